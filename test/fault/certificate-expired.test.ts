import { expect, test } from 'vitest';
import { startServiceWithTls } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a certificate that has expired is the cause, since then, until it is renewed',
  async () => {
    const { service, serve, good, ended } = await startServiceWithTls();
    const endedMs = Date.now();
    serve(ended);
    const { verdict } = await service.sees(
      'the role is down because of its certificate',
      ({ verdict: { cause, sentence } }) =>
        cause?.kind === 'role_down' &&
        /^Role frontend has an expired certificate \(since \d\d:\d\d:\d\d UTC\)/.test(sentence),
    );
    const since = verdict.cause!.since;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(endedMs);
    serve(good);
    expect(await service.isOver('role_down/frontend')).toMatchObject({ start: since });
  },
);
