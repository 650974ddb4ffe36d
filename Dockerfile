# Base images are arguments, so that a mirror or another Node 24 can stand in.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No install script is needed: the image brings the runtime that the `node` dev dependency pins elsewhere.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json && npm ci --omit=dev --ignore-scripts

FROM ${RUNTIME_IMAGE}
LABEL org.opencontainers.image.title="killswitchd" \
      org.opencontainers.image.description="Keeps an exchange's kill-switch timers armed for exactly as long as a trading bot is provably alive" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
ENV NODE_ENV=production \
    KILLSWITCHD_WEB_LISTEN=0.0.0.0:17477
EXPOSE 17477
USER 65532:65532
STOPSIGNAL SIGTERM
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/main.js"]
CMD ["run"]
