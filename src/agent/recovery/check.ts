import { errorText } from '../../core/errors.ts';
import { ProbeError } from '../../probes/probe.ts';

/** A condition before or after a step, checked at that moment. */
export interface Check {
  id: string;
  /** What must hold, for people. */
  text: string;
  /** A result that is unknown does not refuse a step; one that does not hold after it leaves the run unproved. */
  isAdvisory?: boolean;
  /** May come true within a minute, as when roles stop: it is asked again until then. */
  comesTrue?: boolean;
  /** No reason overrides it: without what it asks for nothing can be done. */
  isNeverForced?: boolean;
  /** Concerns commands that the agent runs itself; not asked where the operator runs them. */
  isOfExecution?: boolean;
  run(): Promise<CheckAnswer>;
}

export interface CheckAnswer {
  /** `unknown`: there is no evidence. Before a step it refuses like `false`; after a step it is reported. */
  holds: boolean | 'unknown';
  msg: string;
}

export const yes = (msg: string): CheckAnswer => ({ holds: true, msg });
export const no = (msg: string): CheckAnswer => ({ holds: false, msg });
export const unknown = (msg: string): CheckAnswer => ({ holds: 'unknown', msg });

export const check = (id: string, text: string, run: () => Promise<CheckAnswer>): Check => ({
  id,
  text,
  run,
});

export const advisory = (id: string, text: string, run: () => Promise<CheckAnswer>): Check => ({
  ...check(id, text, run),
  isAdvisory: true,
});

/** Asked only where the agent runs the commands itself. */
export const ofExecution = (asked: Check): Check => ({ ...asked, isOfExecution: true });

/** A check whose command fails has no result. */
export const answerOf = (asked: Check): Promise<CheckAnswer> =>
  asked.run().catch((thrown: unknown) => unknown(errorText(thrown)));

/** A command that fails is an answer, too: the check does not hold. */
export const refusedBy = (thrown: unknown): CheckAnswer => {
  if (thrown instanceof ProbeError && thrown.reason === 'command_failed') return no(thrown.message);
  throw thrown;
};

const signs = { true: 'ok     ', false: 'FAILED ', unknown: 'unknown' } as const;

export const lineOf = ({ text }: Check, { holds, msg }: CheckAnswer): string =>
  `  ${signs[`${holds}`]} ${text}: ${msg}`;
