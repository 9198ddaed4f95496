import type { Evidence, StatusFacts } from '../report.ts';
import { firstStepsFor } from './first-steps.ts';
import type { Found } from './found.ts';
import { reasonOf } from './probe-text.ts';

/** The step of a failed commit, without the directory. */
const failingStep = (step: string): string =>
  step === 'no_directory' ? 'the agent cannot use' : `${step} fails in`;

function reporterProblems(reporters: StatusFacts['reporters']): Found[] {
  return reporters.flatMap(({ block, kind, failingSince, lastFailure }): Found[] => {
    if (failingSince === undefined || lastFailure === undefined) return [];
    const subject = `${block}.${kind}`;
    const { reason, what, at } = lastFailure;
    const detail = reasonOf({ last: { reason, msg: what } });
    const evidence: Evidence[] = [{ source: 'probe', text: `report of ${subject}: ${detail}`, at }];
    const sinceMs = Date.parse(failingSince);
    const firstSteps = firstStepsFor(reason);
    return [{ kind: 'report', subject, about: {}, detail, firstSteps, sinceMs, evidence }];
  });
}

/** The problems of the agent itself: its state, its configuration and its reporters. */
export function agentProblems({ state, config, reporters }: StatusFacts): Found[] {
  const found: Found[] = [];
  const own = { about: {}, evidence: [] };
  if (state.degraded !== undefined)
    found.push({
      ...own,
      kind: 'state',
      subject: '',
      detail: `${failingStep(state.degraded)} ${state.directory}: ${state.error}`,
      sinceMs: state.lastCommitAt === undefined ? undefined : Date.parse(state.lastCommitAt),
    });
  if (!config.lastReloadSuccessful)
    found.push({ ...own, kind: 'reload', subject: '', detail: config.lastReloadError });
  found.push(...reporterProblems(reporters));
  return found;
}
