import { stringify } from 'yaml';
import type { PackName } from './alert.ts';
import type { RuleFile } from './packs.ts';

const style = { lineWidth: 0, minContentWidth: 0, aliasDuplicateObjects: false } as const;

/** A document as YAML without folded lines and anchors. This is a separate file, because few commands need the library. */
export function toYaml(document: unknown): string {
  return stringify(document, style);
}

/** A rule file as a custom resource of the Prometheus operator. */
export function prometheusRule(pack: PackName, file: RuleFile): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: `svc-agent-${pack}`, labels: { 'app.kubernetes.io/name': 'svc-agent' } },
    spec: file,
  };
}

/** Several Kubernetes objects in one document. */
export const listOf = (items: readonly object[]): object => ({ apiVersion: 'v1', kind: 'List', items });
