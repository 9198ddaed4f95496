import type { Protection, ReadSecret } from '../core/access.ts';
import type { Clock, Drops, Gather, Log } from '../core/ports.ts';
import type { ProbeReport } from '../probes/runner/probe-state.ts';
import type { Route, Routes } from '../reporters/listen/http.ts';
import type { Listener, Listeners } from '../reporters/listen/listener.ts';
import { createPull, metricsRoutes, type PullDeps } from '../reporters/pull/pull.ts';
import { eventRoutes, heartbeatRoutes } from './admin/announcements.ts';
import type { Health } from './admin/health.ts';
import { pageRoutes } from './admin/page-routes.ts';
import {
  healthRoutes,
  probeRoutes,
  routesOfHost,
  routesOfOrigin,
  type StatusSources,
  statusRoutes,
} from './admin/routes.ts';
import { type AgentConfig, blocksOf } from './config/types.ts';
import type { BoundListener, Change } from './report.ts';

export interface EndpointsDeps {
  listeners: Listeners;
  health: Health;
  status: StatusSources;
  probes(): readonly ProbeReport[];
  /** Records an announced change. Resolves when the change would survive the death of the agent. */
  announce(change: Change): Promise<void>;
  /** Runs a probe now; undefined if no probe with this name is configured. */
  checkNow(name: string): Promise<ProbeReport | undefined>;
  /** The mark of this agent's own scrapes. */
  mark: string;
  /** Whether a role's last scrape failed, or for a role without a scrape target its last health check. */
  roleDown(role: string): boolean;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
}

/** The bound listeners of one configuration. */
export interface Endpoints {
  readonly addresses: readonly BoundListener[];
  /** Serves the endpoints of the configuration. Until then, new listeners serve only health. */
  open(gather: Gather): Promise<void>;
  close(): Promise<void>;
}

/** One listener: its place in the configuration, its address, and what it serves. */
interface Endpoint {
  name: string;
  /** The configuration key of the address. */
  key: string;
  address: string;
  secure: Protection;
  /** The configuration path of `tls` and `auth`. */
  place: string;
  /** The routes between the bind and the first gather. */
  starting: Routes;
  serve(listener: Listener, gather: Gather): Promise<unknown>;
}

function pullEndpoints(config: AgentConfig, deps: PullDepsOf): Endpoint[] {
  return blocksOf(config).flatMap(({ name, metrics, shows }) => {
    if (metrics.reporter?.kind !== 'pullmetrics') return [];
    const { listenAddress, openMetrics, tls, auth } = metrics.reporter.options;
    const options = { listenAddress, openMetrics, prefix: metrics.prefix };
    const serve: Endpoint['serve'] = (listener, gather) =>
      createPull(options, { ...deps, shows, bind: async () => listener }).start(gather);
    const place = `${name}.pullmetrics`;
    const key = `${place}.listenAddress`;
    const starting = { '/metrics': notYet, ...deps.routes };
    return [{ name, key, address: listenAddress, secure: { tls, auth }, place, starting, serve }];
  });
}

type PullDepsOf = Omit<PullDeps, 'bind' | 'shows'>;

/** The status page, the API and the agent's own series, which are available here without any reporter. */
function adminEndpoints(
  config: AgentConfig,
  deps: PullDepsOf,
  { status, probes, checkNow, ...rest }: EndpointsDeps,
): Endpoint[] {
  const { admin } = config;
  if (!admin) return [];
  const refused = () => rest.drops.count('pull', 'unauthorized');
  const own = { ...deps, watches: () => false, shows: (service: string) => service === '' };
  const serve: Endpoint['serve'] = async (listener, gather) => {
    const options = { listenAddress: admin.listenAddress, openMetrics: false };
    const metrics = metricsRoutes(options, { ...own, bind: async () => listener }, gather);
    const routes = {
      ...pageRoutes(status.report, admin.links ?? {}),
      ...statusRoutes(status),
      ...probeRoutes(probes, checkNow),
      ...heartbeatRoutes(config.backups, config.stateDirectory, { ...rest, checkNow }),
      ...eventRoutes(admin, rest),
      ...metrics,
    };
    // Health checks use any host name.
    listener.routes = { ...routesOfOrigin(deps.routes, refused), ...routesOfHost(routes, admin, refused) };
  };
  /** A listener without authentication and TLS, for health checks without a certificate. */
  const health: Endpoint = {
    name: 'admin.health',
    key: 'admin.health',
    address: admin.health ?? '',
    secure: {},
    place: 'admin.health',
    starting: deps.routes,
    async serve(listener) {
      listener.routes = deps.routes;
    },
  };
  const { listenAddress: address, tls, auth } = admin;
  const key = 'admin.listenAddress';
  const starting = routesOfOrigin({ '/*': notYet, ...deps.routes }, refused);
  const page: Endpoint = {
    name: 'admin',
    key,
    address,
    secure: { tls, auth },
    place: 'admin',
    starting,
    serve,
  };
  return [page, ...(admin.health ? [health] : [])];
}

/**
 * The answer between the bind and the first gather. A client tries again, and does not consider the address missing. A browser
 * loads the page again by itself.
 */
const notYet: Route = {
  methods: ['GET', 'POST'],
  access: 'open',
  handle: (_request, reply) =>
    reply.send(503, 'Starting; try again in a second.\n', { 'retry-after': '1', refresh: '1' }),
};

/**
 * Binds every address of a configuration; addresses that an earlier configuration has, too, are shared with it. Throws what
 * binding throws, with nothing left bound.
 */
export async function bindEndpoints(config: AgentConfig, deps: EndpointsDeps): Promise<Endpoints> {
  const routes = healthRoutes(deps.health);
  const watched = new Set(config.roles);
  const { roleDown, mark, clock, drops, log } = deps;
  const watches = (role: string) => watched.has(role);
  const pullDeps: PullDepsOf = { routes, watches, roleDown, mark, clock, drops, log };
  const endpoints = [...adminEndpoints(config, pullDeps, deps), ...pullEndpoints(config, pullDeps)];
  const bound: { endpoint: Endpoint; listener: Listener; protect: () => void }[] = [];
  const close = async () => {
    await Promise.all(bound.map(({ listener }) => listener.close()));
  };
  try {
    for (const endpoint of endpoints) {
      const { serve: _, ...options } = endpoint;
      const listener = await deps.listeners.hold(options);
      const held = { endpoint, listener, protect: () => {} };
      bound.push(held);
      held.protect = listener.protect(endpoint.secure);
      if (Object.keys(listener.routes).length === 0) listener.routes = endpoint.starting;
    }
  } catch (thrown) {
    await close();
    throw thrown;
  }
  return {
    addresses: bound.map(({ endpoint, listener }) => ({
      listener: endpoint.name,
      address: listener.address,
      tls: endpoint.secure.tls !== undefined,
      certificate: listener.certificate,
    })),
    async open(gather) {
      for (const { endpoint, listener, protect } of bound) {
        protect();
        await endpoint.serve(listener, gather);
      }
    },
    close,
  };
}
