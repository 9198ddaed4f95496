import { agent } from './pages/agent.ts';
import { backups } from './pages/backups.ts';
import { frontend } from './pages/frontend.ts';
import { history } from './pages/history.ts';
import { logs } from './pages/logs.ts';
import { matching } from './pages/matching.ts';
import { overview } from './pages/overview.ts';
import { persistence } from './pages/persistence.ts';
import { processes } from './pages/process.ts';
import { replication } from './pages/replication.ts';
import { taskLatency } from './pages/task-latency.ts';
import { workerAndArchival } from './pages/worker.ts';

/** Every shipped dashboard (CONTRACT, Rules and dashboards). */
export const allDashboards = [
  ...[overview, frontend, history, matching, workerAndArchival, taskLatency, persistence],
  ...[replication, backups, processes, logs, agent],
] as const;
