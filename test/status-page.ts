import { createHealth } from '../src/agent/admin/health.ts';
import { pageRoutes } from '../src/agent/admin/page-routes.ts';
import { healthRoutes, routesOfHost, type StatusSources, statusRoutes } from '../src/agent/admin/routes.ts';
import type { StatusReport } from '../src/agent/report.ts';
import { systemClock } from '../src/core/clock.ts';
import type { Clock } from '../src/core/ports.ts';
import { createListener } from '../src/reporters/listen/listener.ts';
import { statusSourcesOf } from './status-report.ts';

/** The admin listener with reports that a test creates; the page itself is that of `dist/`. */
export interface ServedPage extends StatusSources {
  url: string;
  drops: string[];
  close(): Promise<void>;
}

export async function servePage(report: () => StatusReport, clock: Clock = systemClock): Promise<ServedPage> {
  const drops: string[] = [];
  const sources = statusSourcesOf(report, clock, drops);
  const log = { write() {}, named: () => log };
  const count = (_component: string, reason: string) => void drops.push(reason);
  const listener = await createListener(
    { name: 'admin', address: '127.0.0.1:0' },
    { log, clock, drops: { count }, readSecret: async () => '' },
  );
  const routes = {
    ...pageRoutes(report, {}),
    ...statusRoutes(sources),
    ...healthRoutes(createHealth(() => undefined)),
  };
  listener.routes = routesOfHost(routes, { listenAddress: listener.address }, () => drops.push('host'));
  return {
    ...sources,
    url: `http://${listener.address}`,
    drops,
    async close() {
      sources.history.stop();
      sources.live.endAll();
      await listener.close();
    },
  };
}
