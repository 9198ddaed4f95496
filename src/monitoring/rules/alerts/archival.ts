import type { RuleGroup } from '../alert.ts';

const archive = 'cluster, archive, scheme';

/** The way of closed workflows into long-term storage. */
export const archival: RuleGroup = {
  name: 'svc-archival',
  alerts: [
    {
      name: 'SvcArchiveDown',
      severity: 'warning',
      expr: `max by (${archive}) (svc_archival_up) == 0`,
      for: '10m',
      summary: 'An archive does not answer.',
      description:
        'The {{ $labels.archive }} archive ({{ $labels.scheme }}) does not answer: svc_archival_up is {{ $value }}.',
      dashboard: 'worker',
    },
    {
      name: 'SvcArchivalStalled',
      severity: 'warning',
      expr:
        `time() - max by (${archive}) (svc_archival_newest_object_timestamp_seconds) > $threshold` +
        ' and on (cluster) sum by (cluster) (rate(svc_workflow_completed[1h])) > 0',
      threshold: 86_400,
      for: '1h',
      summary: 'Workflows complete and nothing is archived.',
      description:
        'The newest object of the {{ $labels.archive }} archive ({{ $labels.scheme }}) is {{ $value | humanizeDuration }} old, above $threshold s.',
      dashboard: 'worker',
    },
    {
      name: 'SvcArchivalOff',
      severity: 'warning',
      expr:
        'max by (cluster, domain, archive) (svc_domain_archival_enabled) == 0' +
        ' and on (cluster, archive) max by (cluster, archive) (svc_archival_up)',
      for: '15m',
      summary: 'A domain does not archive although the defaults say so.',
      description:
        'Domain {{ $labels.domain }} has its {{ $labels.archive }} archival off: svc_domain_archival_enabled is {{ $value }}.',
      dashboard: 'worker',
    },
  ],
};
