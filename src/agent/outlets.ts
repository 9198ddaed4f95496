import type { Protection } from '../core/access.ts';
import type { Clock, Drops, Gather, Log } from '../core/ports.ts';
import type { ProbeReport } from '../probes/runner/report.ts';
import type { Listener } from '../reporters/listen/listener.ts';
import type { Listeners } from '../reporters/listen/shared-listeners.ts';
import { createPull, metricsRoutes, type PullDeps } from '../reporters/pull/pull.ts';
import type { StatusReport } from './admin/report.ts';
import { healthRoutes, probeRoutes, statusRoutes } from './admin/routes.ts';
import { blocksOf } from './blocks.ts';
import type { AgentConfig } from './config/types.ts';
import type { Health } from './health.ts';

export interface OutletsDeps {
  listeners: Listeners;
  health: Health;
  report(): StatusReport;
  probes(): readonly ProbeReport[];
  /** Looks at a probe's target at once; undefined for a name that is not configured. */
  look(name: string): Promise<ProbeReport | undefined>;
  /** What this agent's own scrapes bear. */
  mark: string;
  /** Whether a role's last page failed, or of one without pages its last health check. */
  roleDown(role: string): boolean;
  clock: Clock;
  drops: Drops;
  log: Log;
}

/** The bound listeners of one configuration. */
export interface Outlets {
  readonly addresses: readonly { listener: string; address: string; tls: boolean }[];
  /** Serves what the configuration asks for; until then new listeners answer for health alone. */
  open(gather: Gather): Promise<void>;
  close(): Promise<void>;
}

/** One listener: its place in the configuration, its address, and what it serves. */
interface Outlet {
  name: string;
  address: string;
  secure: Protection;
  /** Place of what `secure` was made of. */
  place: string;
  serve(listener: Listener, gather: Gather): Promise<unknown>;
}

function pullOutlets(config: AgentConfig, deps: PullDepsOf): Outlet[] {
  return blocksOf(config).flatMap(({ name, metrics, shows }) => {
    if (metrics.reporter?.kind !== 'pullmetrics') return [];
    const { listenAddress, openMetrics, tls, auth } = metrics.reporter.options;
    const options = { listenAddress, openMetrics, prefix: metrics.prefix };
    const serve: Outlet['serve'] = (listener, gather) =>
      createPull(options, { ...deps, shows, bind: async () => listener }).start(gather);
    return [{ name, address: listenAddress, secure: { tls, auth }, place: `${name}.pullmetrics`, serve }];
  });
}

type PullDepsOf = Omit<PullDeps, 'bind' | 'shows'>;

/** Status page, API and the agent's own series, which are here even where nothing is re-exported. */
function adminOutlets(
  config: AgentConfig,
  deps: PullDepsOf,
  { report, probes, look }: OutletsDeps,
): Outlet[] {
  const { admin } = config;
  if (!admin) return [];
  const own = { ...deps, watches: () => false, shows: (service: string) => service === '' };
  const serve: Outlet['serve'] = async (listener, gather) => {
    const options = { listenAddress: admin.listenAddress, openMetrics: false };
    const metrics = metricsRoutes(options, { ...own, bind: async () => listener }, gather);
    listener.routes = { ...deps.routes, ...statusRoutes(report), ...probeRoutes(probes, look), ...metrics };
  };
  /** Open and in the clear: for probes that have no certificate. */
  const health: Outlet = {
    name: 'admin.health',
    address: admin.health ?? '',
    secure: {},
    place: 'admin.health',
    async serve(listener) {
      listener.routes = deps.routes;
    },
  };
  const { listenAddress: address, tls, auth } = admin;
  const page: Outlet = { name: 'admin', address, secure: { tls, auth }, place: 'admin', serve };
  return [page, ...(admin.health ? [health] : [])];
}

/**
 * Binds every address of a configuration, shared with an earlier one where they are the same. Throws what
 * binding throws, with nothing left bound.
 */
export async function bindOutlets(config: AgentConfig, deps: OutletsDeps): Promise<Outlets> {
  const routes = healthRoutes(deps.health);
  const watched = new Set(config.roles);
  const pullDeps: PullDepsOf = {
    ...deps,
    routes,
    watches: (role) => watched.has(role),
  };
  const outlets = [...adminOutlets(config, pullDeps, deps), ...pullOutlets(config, pullDeps)];
  const bound: { outlet: Outlet; listener: Listener; protect: () => void }[] = [];
  const close = async () => {
    await Promise.all(bound.map(({ listener }) => listener.close()));
  };
  try {
    for (const outlet of outlets) {
      const { serve: _, ...options } = outlet;
      const listener = await deps.listeners.hold(options);
      const held = { outlet, listener, protect: () => {} };
      bound.push(held);
      held.protect = listener.protect(outlet.secure);
      if (Object.keys(listener.routes).length === 0) listener.routes = routes;
    }
  } catch (thrown) {
    await close();
    throw thrown;
  }
  return {
    addresses: bound.map(({ outlet, listener }) => ({
      listener: outlet.name,
      address: listener.address,
      tls: outlet.secure.tls !== undefined,
    })),
    async open(gather) {
      for (const { outlet, listener, protect } of bound) {
        protect();
        await outlet.serve(listener, gather);
      }
    },
    close,
  };
}
