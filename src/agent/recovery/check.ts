import { errorText } from '../../core/errors.ts';
import { ProbeError } from '../../probes/probe.ts';

/** A condition before or after a step, checked at that moment. */
export interface Check {
  id: string;
  /** What must hold, for people. */
  text: string;
  /**
   * Whether an unknown result does not refuse a step. A check of this kind that does not hold after the step leaves the run
   * unproved.
   */
  isAdvisory?: boolean;
  /** Whether the condition may become true within a minute, for example when roles stop: the check is repeated until then. */
  comesTrue?: boolean;
  /** Whether no reason can override the check: if it does not hold, nothing can be done. */
  isNeverForced?: boolean;
  /** Whether the check is about commands that the agent runs itself. It is not asked if the operator runs the commands. */
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

/** Marks a check that is asked only if the agent runs the commands itself. */
export const ofExecution = (asked: Check): Check => ({ ...asked, isOfExecution: true });

/** The answer to a check. A check whose command fails has no result. */
export const answerOf = (asked: Check): Promise<CheckAnswer> =>
  asked.run().catch((thrown: unknown) => unknown(errorText(thrown)));

/** The answer to a check whose failing command means that the check does not hold. */
export const refusedBy = (thrown: unknown): CheckAnswer => {
  if (thrown instanceof ProbeError && thrown.reason === 'command_failed') return no(thrown.message);
  throw thrown;
};

const signs = { true: 'ok     ', false: 'FAILED ', unknown: 'unknown' } as const;

export const lineOf = ({ text }: Check, { holds, msg }: CheckAnswer): string =>
  `  ${signs[`${holds}`]} ${text}: ${msg}`;
