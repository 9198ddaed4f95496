import { stringify } from 'yaml';
import type { PackName } from './alert.ts';
import type { RuleFile } from './render.ts';

const style = { lineWidth: 0, minContentWidth: 0, aliasDuplicateObjects: false } as const;

/** Any document as YAML in the project's style: no folded lines, no anchors. */
export function toYaml(document: unknown): string {
  return stringify(document, style);
}

/** What the Prometheus operator loads; its instances select rules by labels, which are the user's to add. */
export function prometheusRule(pack: PackName, file: RuleFile): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: `svc-agent-${pack}`, labels: { 'app.kubernetes.io/name': 'svc-agent' } },
    spec: file,
  };
}

/** Several Kubernetes objects as one document. */
export const listOf = (items: readonly object[]): object => ({ apiVersion: 'v1', kind: 'List', items });
