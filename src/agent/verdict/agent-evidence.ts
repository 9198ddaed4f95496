import type { Evidence, StatusFacts } from '../report.ts';
import type { Found } from './found.ts';
import { firstStepsFor, limitOf } from './kinds.ts';
import { reasonOf } from './probe-text.ts';

/** Whether a certificate has expired, or expires soon, and the words for it; undefined if it is valid for longer. */
export function expiryOf(
  notAfter: string,
  nowMs: number,
): { isOver: boolean; words: Pick<Found, 'predicate' | 'detail'> } | undefined {
  const leftMs = Date.parse(notAfter) - nowMs;
  if (leftMs >= limitOf('SvcCertificateExpiring') * 1e3) return undefined;
  const isOver = leftMs <= 0;
  return { isOver, words: { detail: `on ${notAfter}`, ...(isOver && { predicate: 'has|have expired' }) } };
}

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

/** Certificates of the agent's listeners that expire, or that newer files do not replace because these cannot be used. */
function listenerProblems(listeners: StatusFacts['listeners'], nowMs: number): Found[] {
  return listeners.flatMap(({ listener, certificate }): Found[] => {
    if (!certificate) return [];
    const own = { kind: 'certificate', subject: `listener ${listener}`, about: {}, evidence: [] } as const;
    const expiry = expiryOf(certificate.notAfter, nowMs);
    const { refused } = certificate;
    if (refused === undefined || expiry?.isOver) return expiry ? [{ ...own, ...expiry.words }] : [];
    const predicate = 'is|are not replaced by the new files, which cannot be used';
    return [{ ...own, predicate, detail: refused }];
  });
}

/** The problems of the agent itself: its state, its configuration, its reporters and its certificates. */
export function agentProblems({ state, config, reporters, listeners }: StatusFacts, nowMs: number): Found[] {
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
  return [...found, ...reporterProblems(reporters), ...listenerProblems(listeners, nowMs)];
}
