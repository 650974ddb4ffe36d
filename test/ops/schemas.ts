import { Type } from 'typebox';
import { Errors } from 'typebox/value';

/** Kinds that the client passes through unread: what their definitions allow of what is used here. */
const closed = { additionalProperties: false };
const Strings = Type.Record(Type.String(), Type.String());
const Metadata = Type.Object({ name: Type.String(), labels: Type.Optional(Strings) }, closed);
const Selector = Type.Object(
  {
    matchLabels: Type.Optional(Strings),
    matchExpressions: Type.Optional(
      Type.Array(
        Type.Object(
          {
            key: Type.String(),
            operator: Type.Enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
            values: Type.Optional(Type.Array(Type.String())),
          },
          closed,
        ),
      ),
    ),
  },
  closed,
);
const Peers = Type.Optional(
  Type.Array(
    Type.Object(
      { namespaceSelector: Type.Optional(Selector), podSelector: Type.Optional(Selector) },
      { ...closed, minProperties: 1 },
    ),
  ),
);
const Port = Type.Object({ protocol: Type.Enum(['TCP', 'UDP']), port: Type.Integer() }, closed);
const Ports = Type.Optional(Type.Array(Port));
const duration = Type.String({ pattern: '^[0-9]+s$' });

const object = (apiVersion: string, kind: string, spec: ReturnType<typeof Type.Object>) =>
  Type.Object(
    { apiVersion: Type.Literal(apiVersion), kind: Type.Literal(kind), metadata: Metadata, spec },
    closed,
  );

const SCHEMAS = {
  NetworkPolicy: object(
    'networking.k8s.io/v1',
    'NetworkPolicy',
    Type.Object(
      {
        podSelector: Selector,
        policyTypes: Type.Array(Type.Enum(['Ingress', 'Egress'])),
        ingress: Type.Array(Type.Object({ from: Peers, ports: Ports }, closed)),
        egress: Type.Array(Type.Object({ to: Peers, ports: Ports }, closed)),
      },
      closed,
    ),
  ),
  PodMonitor: object(
    'monitoring.coreos.com/v1',
    'PodMonitor',
    Type.Object(
      {
        selector: Selector,
        podMetricsEndpoints: Type.Array(
          Type.Object(
            {
              port: Type.String(),
              path: Type.String(),
              interval: duration,
              scrapeTimeout: duration,
              relabelings: Type.Array(
                Type.Object({ sourceLabels: Type.Array(Type.String()), targetLabel: Type.String() }, closed),
              ),
            },
            closed,
          ),
        ),
      },
      closed,
    ),
  ),
  PodDisruptionBudget: object(
    'policy/v1',
    'PodDisruptionBudget',
    Type.Object(
      {
        maxUnavailable: Type.Integer(),
        unhealthyPodEvictionPolicy: Type.Enum(['AlwaysAllow', 'IfHealthyBudget']),
        selector: Selector,
      },
      closed,
    ),
  ),
  Service: object(
    'v1',
    'Service',
    Type.Object(
      {
        clusterIP: Type.Literal('None'),
        publishNotReadyAddresses: Type.Boolean(),
        selector: Strings,
        ports: Type.Array(
          Type.Object(
            {
              name: Type.String(),
              port: Type.Integer(),
              targetPort: Type.String(),
              protocol: Type.Literal('TCP'),
            },
            closed,
          ),
        ),
      },
      closed,
    ),
  ),
  Secret: Type.Object(
    {
      apiVersion: Type.Literal('v1'),
      kind: Type.Literal('Secret'),
      metadata: Metadata,
      type: Type.Literal('Opaque'),
      data: Strings,
    },
    closed,
  ),
  ConfigMap: Type.Object(
    { apiVersion: Type.Literal('v1'), kind: Type.Literal('ConfigMap'), metadata: Metadata, data: Strings },
    closed,
  ),
} as const;

/** Places that do not fit the kind; undefined for a kind that has no schema here. */
export function misfits(manifest: { readonly kind: string }): string[] | undefined {
  const schema = (SCHEMAS as Readonly<Record<string, (typeof SCHEMAS)[keyof typeof SCHEMAS]>>)[manifest.kind];
  return (
    schema && [...Errors(schema, manifest)].map(({ instancePath, message }) => `${instancePath}: ${message}`)
  );
}
