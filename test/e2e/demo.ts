import { until } from '../until.ts';
import { mainFile, type Running, start } from './process.ts';

interface Demo extends Running {
  /** Resolves with the text that the demo prints in the pattern's group, once it does. */
  shown(pattern: RegExp, withinMs?: number): Promise<string>;
}

export function startDemo(args: readonly string[], env: Record<string, string> = {}): Demo {
  const demo = start(process.execPath, [mainFile, 'demo', ...args], env);
  const shown = (pattern: RegExp, withinMs?: number) =>
    until(
      `the demo prints ${pattern}`,
      () => {
        const [, group] = pattern.exec(demo.output()) ?? [];
        if (group === undefined) throw new Error(`it printed\n${demo.output()}`);
        return group;
      },
      { withinMs },
    );
  return { ...demo, shown };
}

/** Alerts on a state continue for five minutes (`keep_firing_for`). */
export const overWithinMs = 600_000;
