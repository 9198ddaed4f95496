import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseOptions, type ServiceOptions } from '../../../examples/service/options.ts';
import { roles } from '../../../src/core/catalog.ts';

const read = (name: string) => readFileSync(new URL(`../../../examples/${name}`, import.meta.url), 'utf8');
const defaults = parseOptions([]) as ServiceOptions;

describe('examples/agent.yaml', () => {
  // What stands there as a comment for now has to be right as well.
  const config = parse(read('agent.yaml').replace(/^( +)# (health|scrape):/gm, '$1$2:'));

  it.each(roles.map((role, index) => ({ role, index })))(
    'finds $role of the example service',
    ({ role, index }) => {
      expect(config.services[role]).toMatchObject({
        logs: { paths: [`${defaults.directory}/${role}.log*`], startAt: 'beginning' },
        health: `http://127.0.0.1:${defaults.healthPort + index}/health`,
        scrape: `http://127.0.0.1:${defaults.metricsPort + index}/metrics`,
      });
    },
  );

  it('watches every role', () => {
    expect(config.roles).toEqual([...roles]);
    expect(Object.keys(config.services)).toEqual([...roles]);
  });
});

describe('examples/service.yaml', () => {
  const config = parse(read('service.yaml'));

  it('has the scrape endpoints of the example service', () => {
    expect(roles.map((role) => config.services[role].metrics.pullmetrics.listenAddress)).toEqual(
      roles.map((_role, index) => `127.0.0.1:${defaults.metricsPort + index}`),
    );
  });

  it('is without the faults that the specification names', () => {
    expect(['debug', 'info', 'warn', 'error', 'fatal']).toContain(config.log.level);
    const versions = Object.values<{ initialFailoverVersion: number }>(
      config.clusterGroupMetadata.clusterGroup,
    );
    expect(new Set(versions.map((cluster) => cluster.initialFailoverVersion)).size).toBe(versions.length);
    for (const role of roles)
      expect(Object.keys(config.services[role].metrics)).toEqual(['tags', 'pullmetrics']);
  });
});
