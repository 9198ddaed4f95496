import type { StatusFacts } from '../report.ts';
import type { Found } from './found.ts';
import { limitOf } from './kinds.ts';

/** Problems with certificates: those that probes see, and those that the agent's own listeners present. Pure. */
export const certificateProblems = (facts: StatusFacts, nowMs: number): Found[] => [
  ...probedProblems(facts, nowMs),
  ...listenerProblems(facts, nowMs),
];

function probedProblems({ certificates }: StatusFacts, nowMs: number): Found[] {
  return certificates
    .filter(({ notAfter }) => Date.parse(notAfter) - nowMs < limitOf('SvcCertificateExpiring') * 1e3)
    .map(({ probe, notAfter }) => {
      const isOver = Date.parse(notAfter) <= nowMs;
      return {
        kind: 'certificate',
        subject: probe,
        about: { probe },
        detail: `on ${notAfter}`,
        ...(isOver && { predicate: 'has|have expired' }),
        evidence: [
          {
            source: 'probe',
            text: `${probe}: its certificate ${isOver ? 'expired' : 'expires'} on ${notAfter}`,
          },
        ],
      };
    });
}

/** Certificates of the agent's own listeners that expire, or that newer files do not replace because these are refused. */
function listenerProblems({ listeners }: StatusFacts, nowMs: number): Found[] {
  return listeners.flatMap(({ listener, certificate }): Found[] => {
    if (!certificate) return [];
    const { notAfter, refused } = certificate;
    const own = { kind: 'certificate', subject: `listener ${listener}`, about: {}, evidence: [] } as const;
    const leftMs = Date.parse(notAfter) - nowMs;
    if (leftMs <= 0) return [{ ...own, predicate: 'has|have expired', detail: `on ${notAfter}` }];
    if (refused !== undefined)
      return [
        { ...own, predicate: 'is|are not replaced by the new files, which cannot be used', detail: refused },
      ];
    return leftMs < limitOf('SvcCertificateExpiring') * 1e3 ? [{ ...own, detail: `on ${notAfter}` }] : [];
  });
}
