import { agentMetric } from './agent-metrics.ts';
import { AgentError } from './errors.ts';
import type { OpenIntake } from './intake.ts';
import type { Counter } from './model.ts';
import type { Drops } from './ports.ts';
import { type Component, type DropReason, dropReasons } from './reasons.ts';

/** Components whose drops come from log bytes: counted once across restarts, as the lines themselves are. */
const durableComponents: ReadonlySet<Component> = new Set<Component>(['logs', 'rules']);

/** Where drops are counted, by how long they are kept. */
export interface DropsDeps {
  durable: Pick<OpenIntake, 'counter' | 'declare'>;
  immediate: Pick<OpenIntake, 'counter'>;
}

const { name, help, tags } = agentMetric('svc_agent_dropped_total');

/**
 * `svc_agent_dropped_total{component,reason}`, at 0 from the start for every pair of the closed lists. Counting
 * a reason of another component throws `AgentError` (`internal`).
 */
export function createDrops({ durable, immediate }: DropsDeps): Drops {
  durable.declare('counter', name, { help, tags });
  const counters = new Map<Component, Map<DropReason, Counter>>();
  for (const component of Object.keys(dropReasons) as Component[]) {
    const intake = durableComponents.has(component) ? durable : immediate;
    const open = (reason: DropReason) => intake.counter(name, { component, reason }, { help });
    counters.set(component, new Map(dropReasons[component].map((reason) => [reason, open(reason)])));
  }
  return {
    count(component, reason, n = 1) {
      const counter = counters.get(component)?.get(reason);
      if (!counter) {
        const fault = { where: `drops.${component}`, what: 'no reason of this component', got: reason };
        throw new AgentError('internal', fault);
      }
      counter.add(n);
    },
  };
}
