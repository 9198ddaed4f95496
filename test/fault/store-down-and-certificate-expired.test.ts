import { expect, test } from 'vitest';
import { startServiceWithTls } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a store that is down while the certificate of a role has expired: both are causes',
  async () => {
    const { service, serve, good, ended } = await startServiceWithTls();
    const endedMs = Date.now();
    serve(ended);
    const alone = await service.sees(
      'the certificate is the cause',
      ({ verdict: { cause } }) => cause?.kind === 'role_down',
    );
    expect(alone.verdict.sentence).toMatch(
      /^Role frontend has an expired certificate \(since \d\d:\d\d:\d\d UTC\)/,
    );
    const certificateSince = alone.verdict.cause!.since;
    expect(Date.parse(certificateSince)).toBeGreaterThanOrEqual(endedMs);

    await service.setDoor('shut');
    const both = await service.sees('both are causes', ({ verdict: { problems } }) =>
      problems.some(({ kind, consequences }) => kind === 'store_down' && consequences.length === 3),
    );
    expect(both.verdict.sentence).toMatch(
      /^Store main refuses connections \(since \d\d:\d\d:\d\d UTC\) and role frontend has an expired certificate \(since \d\d:\d\d:\d\d UTC\); 3 roles/,
    );
    const sinces = both.verdict.problems
      .filter(({ causedBy }) => causedBy === undefined)
      .map(({ since }) => since);
    expect(sinces[1]).toBe(certificateSince);

    await service.setDoor('open');
    const left = await service.sees(
      'the certificate is left',
      ({ verdict: { problems, cause } }) =>
        cause?.kind === 'role_down' &&
        problems.every(({ kind }) => kind === 'role_down' || kind === 'certificate'),
    );
    expect(left.verdict.cause?.since).toBe(certificateSince);
    serve(good);
    expect(await service.isOver('role_down/frontend')).toMatchObject({ start: certificateSince });
    expect(await service.isOver('store_down/main/persistence')).toMatchObject({
      start: sinces[0],
      consequences: '3 roles',
    });
  },
);
