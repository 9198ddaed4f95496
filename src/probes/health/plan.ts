import { healthFailureReasons } from '../../core/reasons.ts';
import { shownUrl } from '../../core/redacted.ts';
import type { Lookup } from '../connection.ts';
import type { Finding, Probe, ProbeRow } from '../probe.ts';
import type { HealthOptions } from './block.ts';
import type { Dial, HealthDeps } from './health-check.ts';

export interface HealthPlanOptions {
  /** The services; only selected services are checked. */
  services: readonly { name: string; selected: boolean; health?: HealthOptions }[];
}

/** One health check: which role, where, and how long it may take. */
interface HealthTarget {
  service: string;
  url: URL;
  dial: Dial;
  timeoutMs: number;
}

type HealthCheck = (signal: AbortSignal, recalled: unknown) => Promise<Finding>;

interface HealthProtocol {
  /** The port if the URL has none. */
  port?: number;
  /** When TLS is used. `always`: the scheme means TLS. `asked`: only with `tls` in the options. Missing: never. */
  tls?: 'always' | 'asked';
  load(): Promise<(target: HealthTarget, deps: HealthDeps) => HealthCheck>;
}

const http = async () => {
  const { checkHttp } = await import('./health-check.ts');
  return (target: HealthTarget, deps: HealthDeps): HealthCheck => {
    return (signal) => checkHttp(target, deps, signal);
  };
};

const grpc = async () => {
  const { checkGrpc } = await import('./grpc-check.ts');
  return ({ url, service: role, ...rest }: HealthTarget, deps: HealthDeps): HealthCheck => {
    const target = { ...rest, role, service: url.pathname.replace(/^\/|\/$/g, '') };
    return (signal, recalled) => checkGrpc(target, deps, signal, recalled);
  };
};

const tcp = async () => {
  const { checkTcp } = await import('./health-check.ts');
  return ({ dial }: HealthTarget, deps: HealthDeps): HealthCheck => {
    return (signal) => checkTcp(dial, deps, signal);
  };
};

const healthProtocols: Readonly<Record<string, HealthProtocol>> = {
  'http:': { port: 80, load: http },
  'https:': { port: 443, tls: 'always', load: http },
  'grpc:': { load: grpc },
  'grpcs:': { tls: 'always', load: grpc },
  'tcp:': { tls: 'asked', load: tcp },
};

/** A row for each selected service with a health endpoint. `lookup` replaces the system's name resolution. */
export function planHealth({ services }: HealthPlanOptions, lookup?: Lookup): ProbeRow[] {
  return services.flatMap(({ name, selected, health }) =>
    selected && health !== undefined ? [healthRow(name, health, lookup)] : [],
  );
}

function healthRow(service: string, options: HealthOptions, lookup: Lookup | undefined): ProbeRow {
  const url = new URL(options.url);
  const protocol = healthProtocols[url.protocol]!;
  const { intervalMs, timeoutMs, failureThreshold, successThreshold } = options;
  return {
    name: `health/${service}`,
    kind: 'health',
    target: shownUrl(options.url),
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
      const load = await protocol.load();
      const target = { service, url, dial: healthDial(url, protocol, options), timeoutMs };
      return { check: load(target, { ...deps, lookup }) };
    },
  };
}

function healthDial(url: URL, protocol: HealthProtocol, { tls, auth }: HealthOptions): Dial {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: url.port === '' ? (protocol.port ?? 0) : Number(url.port) };
  return { address, tls: { always: tls ?? {}, asked: tls, never: undefined }[protocol.tls ?? 'never'], auth };
}
