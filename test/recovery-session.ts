import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Check, type CheckAnswer, check } from '../src/agent/recovery/check.ts';
import type { Operator } from '../src/agent/recovery/operator.ts';
import type { RecoveryStep } from '../src/agent/recovery/procedures.ts';
import { runSession } from '../src/agent/recovery/session.ts';
import { newFolder } from './folder.ts';

type Options = Parameters<typeof runSession>[0];

export const step = (id: string, over: Partial<RecoveryStep> = {}): RecoveryStep => ({
  id,
  title: `Do ${id}`,
  text: `Why ${id}.`,
  ...over,
});
export const holds = (answer: CheckAnswer, id = 'c'): Check => check(id, `check ${id}`, async () => answer);

/** An operator who gives the same answer to every question, or the answers in a list. */
export function operator(answers: boolean | readonly boolean[] = true, isAway = false) {
  const lines: string[] = [];
  const asked: string[] = [];
  const answer = (question: string) => {
    asked.push(question);
    return Promise.resolve(typeof answers === 'boolean' ? answers : (answers[asked.length - 1] ?? false));
  };
  const own: Operator = {
    isAway,
    print: (line) => void lines.push(line),
    ask: answer,
    confirmName: (what, name) => answer(`${what}: ${name}`),
  };
  return { ...own, lines, asked, text: () => lines.join('\n') };
}

/** Runs steps with a journal that remains for the next run. */
export function sessions() {
  const journal = join(newFolder(), 'steps.jsonl');
  const events = () =>
    readFileSync(journal, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const lock: Options['lock'] = {
    commandStarts: () => ({}),
    commandStarted: () => {},
    commandEnded: () => undefined,
  };
  const run = (
    steps: readonly RecoveryStep[],
    who: ReturnType<typeof operator>,
    over: Partial<Options> = {},
  ) =>
    runSession(
      {
        procedure: 'failback',
        subject: { target: { domain: 'orders' } },
        steps,
        journal,
        lock,
        execute: true,
        pause: async () => {},
        ...over,
      },
      who,
    );
  return { run, events, journal };
}
