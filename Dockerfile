# Base images are arguments, so that a mirror, a digest or another Node 24 can stand in. The second one brings no shell
# and no package manager: Node at /nodejs/bin/node and the user 65532 are all that is asked of it.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian13:nonroot

FROM ${BUILD_IMAGE} AS build
# Process 1 of a container has to reap what others leave behind, which Node does not do.
RUN test -x /usr/bin/tini-static || (apt-get update && apt-get install -y --no-install-recommends tini)
WORKDIR /app
COPY package.json package-lock.json ./
# No install script is needed: the image brings the runtime that the `node` dev dependency pins elsewhere.
RUN npm ci --ignore-scripts
COPY src ./src
# The example configuration with its schema, and the sample bots.
COPY config ./config
COPY clients ./clients
COPY deploy/package ./deploy/package
ARG REVISION=unknown
RUN npm run bundle
WORKDIR /app/control

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="killswitchd" \
      org.opencontainers.image.description="Keeps an exchange's kill-switch timers armed for exactly as long as a trading bot is provably alive" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
COPY --from=build /usr/bin/tini-static /tini
COPY --from=build /app/build/bundle ./
# A volume that is mounted here begins with this owner: the socket of the daemon goes into it.
COPY --from=build --chown=65532:65532 /app/control /run/killswitchd
# Loopback would be out of reach of probes and of Prometheus: they come to the address of the container.
ENV NODE_ENV=production \
    KILLSWITCHD_WEB_LISTEN=0.0.0.0:17477
EXPOSE 17477
# A number: Kubernetes cannot tell by a name that it is not root.
USER 65532:65532
STOPSIGNAL SIGTERM
# Whether its loop makes progress, and not whether the exchange is well: that is no reason to start it again.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["/nodejs/bin/node", "--disable-sigusr1", "/app/dist/main.js", "healthcheck"]
# In a pod whose containers share their processes it is not process 1, and reaps all the same (-s).
ENTRYPOINT ["/tini", "-s", "--", "/nodejs/bin/node", "--disable-sigusr1", "--max-semi-space-size=4", "--max-old-space-size=2000", "/app/dist/main.js"]
CMD ["run"]
