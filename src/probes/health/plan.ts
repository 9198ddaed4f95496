import { healthFailureReasons } from '../../core/reasons.ts';
import type { Lookup } from '../connection/connect.ts';
import type { ProbesOptions } from '../options.ts';
import type { Finding, Probe, ProbeRow } from '../probe.ts';
import type { Dial, HealthDeps } from './look.ts';
import type { HealthOptions } from './options.ts';

/** What is asked of a role, and how. */
interface Asked {
  service: string;
  url: URL;
  dial: Dial;
  timeoutMs: number;
}

type Look = (signal: AbortSignal, recalled: unknown) => Promise<Finding>;

interface Protocol {
  /** Where the URL names none. */
  port?: number;
  /** Whether TLS is spoken always, or only where the options have it; else never. */
  tls?: 'always' | 'asked';
  load(): Promise<(asked: Asked, deps: HealthDeps) => Look>;
}

async function loadHttp() {
  const { httpHealth } = await import('./http/http.ts');
  return (asked: Asked, deps: HealthDeps): Look =>
    (signal) =>
      httpHealth(asked, deps, signal);
}

async function loadGrpc() {
  const { grpcHealth } = await import('./grpc/grpc.ts');
  return ({ url, service: role, ...rest }: Asked, deps: HealthDeps): Look => {
    const asked = { ...rest, role, service: url.pathname.replace(/^\/|\/$/g, '') };
    return (signal, recalled) => grpcHealth(asked, deps, signal, recalled);
  };
}

async function loadTcp() {
  const { tcpHealth } = await import('./tcp.ts');
  return ({ dial }: Asked, deps: HealthDeps): Look =>
    (signal) =>
      tcpHealth(dial, deps, signal);
}

const protocols: Readonly<Record<string, Protocol>> = {
  'http:': { port: 80, load: loadHttp },
  'https:': { port: 443, tls: 'always', load: loadHttp },
  'grpc:': { load: loadGrpc },
  'grpcs:': { tls: 'always', load: loadGrpc },
  'tcp:': { tls: 'asked', load: loadTcp },
};

const protocolOf = (url: URL): Protocol => protocols[url.protocol]!;

function dialOf(url: URL, { tls, auth }: HealthOptions): Dial {
  const protocol = protocolOf(url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: url.port === '' ? (protocol.port ?? 0) : Number(url.port) };
  const spoken = { always: tls ?? {}, asked: tls, never: undefined }[protocol.tls ?? 'never'];
  return { address, tls: spoken, auth };
}

/** Whom one asks, without what may be secret in a URL. */
const targetOf = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`;

function rowOf(service: string, options: HealthOptions, lookup: Lookup | undefined): ProbeRow {
  const url = new URL(options.url);
  const { intervalMs, timeoutMs, failureThreshold, successThreshold } = options;
  return {
    name: `health/${service}`,
    kind: 'health',
    target: targetOf(url),
    service,
    schedule: { intervalMs, timeoutMs, failureThreshold, successThreshold },
    shows: {
      up: { name: 'svc_role_up', labels: {} },
      duration: { name: 'svc_role_health_check_duration_seconds', labels: {} },
      failures: { name: 'svc_role_health_failures_total', labels: {} },
      transitions: { name: 'svc_role_health_transitions_total', labels: {} },
    },
    reasons: healthFailureReasons,
    key: JSON.stringify(options),
    async open(deps): Promise<Probe> {
      const look = await protocolOf(url).load();
      const asked = { service, url, dial: dialOf(url, options), timeoutMs };
      return { check: look(asked, { ...deps, lookup }) };
    },
  };
}

/** A row for the health of each selected service that has an endpoint. `lookup`: the system's unless given. */
export function planHealth({ services }: ProbesOptions, lookup?: Lookup): ProbeRow[] {
  return services.flatMap(({ name, selected, health }) =>
    selected && health !== undefined ? [rowOf(name, health, lookup)] : [],
  );
}
