import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseDescription } from '../../../../src/probes/domains/description.ts';
import { planDomains } from '../../../../src/probes/domains/plan.ts';
import { probeDeps, probeOnce, probesOptions } from '../../../cluster-group.ts';
import { newFolder } from '../../../folder.ts';

/** A check of a domain whose client prints this text. */
function checked(printed: string, uri = 'file:///var/lib/svc/archive', archival = true) {
  const folder = newFolder();
  writeFileSync(join(folder, 'printed'), printed);
  const command = ['cat', join(folder, 'printed')];
  const section = { status: 'enabled', enableRead: false, providers: [] } as const;
  const [row] = planDomains(
    probesOptions({
      domains: { watch: ['orders'], describe: { command, intervalMs: 60_000, timeoutMs: 10_000 } },
      ...(archival && {
        archival: { history: section },
        domainDefaults: { archival: { history: { status: 'enabled', uri } } },
      }),
    }),
  );
  return { row: row!, folder };
}

const described = (more: object) =>
  JSON.stringify({ Name: 'orders', ActiveCluster: 'dc1', IsGlobal: true, Clusters: ['dc1'], ...more });

const gaugeOf = (finding: { gauges?: readonly { name: string; value: number }[] }, name: string) =>
  finding.gauges?.find((one) => one.name === name)?.value;

describe('a domain', () => {
  test('default retention: 7 days where the description shows none, and shown as such', async () => {
    const without = await probeOnce(checked(described({})).row);
    expect(gaugeOf(without, 'svc_domain_retention_seconds')).toBe(604_800);
    expect(without.details).toMatchObject({ retentionMs: 604_800_000, retentionIsDefault: true });
    const own = await probeOnce(checked(described({ RetentionDays: 3 })).row);
    expect(gaugeOf(own, 'svc_domain_retention_seconds')).toBe(259_200);
    expect(own.details!.retentionIsDefault).toBeUndefined();
  });

  test('description: free text, on one line', async () => {
    const finding = await probeOnce(checked(described({ Description: 'orders of\nthe shop \u202e' })).row);
    expect(finding.details!.description).toBe('orders of the shop');
    expect(parseDescription('Name: orders\nDescription: the shop\nActiveClusterName: dc1\n')).toMatchObject({
      description: 'the shop',
    });
    expect(
      parseDescription(
        JSON.stringify({
          domainInfo: { name: 'orders', description: 'raw' },
          replicationConfiguration: { activeClusterName: 'dc1' },
          configuration: { historyArchivalStatus: 'ENABLED', historyArchivalURI: 's3://b/p' },
        }),
      ),
    ).toMatchObject({ description: 'raw', archivalUris: { history: 's3://b/p' } });
  });

  test('archive of its own: probed, and a fault of the domain if it cannot be used', async () => {
    const { row, folder } = checked('');
    const own = join(folder, 'own');
    const uri = `file://${own}`;
    const print = (status: string) =>
      writeFileSync(
        join(folder, 'printed'),
        described({ HistoryArchivalStatus: status, HistoryArchivalURI: uri }),
      );
    print('ENABLED');
    mkdirSync(own);
    const probe = await row.open(probeDeps());
    onTestFinished(() => probe.close?.());
    const check = () => probe.check(AbortSignal.timeout(30_000), undefined);
    expect(await check()).toMatchObject({
      reason: undefined,
      details: { archives: { history: { uri, ok: true, msg: expect.stringContaining('writable') } } },
    });
    // The archive was there before, so its absence is a fault.
    rmSync(own, { recursive: true });
    const gone = await check();
    expect(gone.reason).toBe('not_found');
    expect(gone.msg).toContain(`its history archive ${uri}: `);
    expect(row.reasons).toContain('not_found');
    print('DISABLED');
    expect((await check()).reason).toBeUndefined();
  });

  test('an archive that is the one of new domains has a probe of its own, and none is checked without archival', async () => {
    const printed = described({
      HistoryArchivalStatus: 'ENABLED',
      HistoryArchivalURI: 'file:///nowhere/at/all/',
    });
    const same = await probeOnce(checked(printed, 'file:///nowhere/at/all/').row);
    expect(same.details!.archives).toBeUndefined();
    const none = await probeOnce(checked(printed, '', false).row);
    expect(none.details!.archives).toBeUndefined();
    const strange = described({ HistoryArchivalStatus: 'ENABLED', HistoryArchivalURI: 'ftp//x y' });
    expect(await probeOnce(checked(strange).row)).toMatchObject({
      reason: 'failed',
      msg: expect.stringContaining('not an archival URI'),
    });
  });
});
