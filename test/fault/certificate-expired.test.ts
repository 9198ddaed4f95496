import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { startLiveService } from '../live-service.ts';
import { hasPostgres } from '../postgres.ts';

test.skipIf(!hasPostgres)(
  'a certificate that has expired is the cause, since then, until it is renewed',
  async () => {
    const made = makeCertificates();
    const authority = made.authority('ours', 60);
    const [served, good] = [
      made.signed('served', authority, { days: 60 }),
      made.signed('good', authority, { days: 60 }),
    ];
    const ended = made.signed('ended', authority, { days: -1 });
    const service = await startLiveService({ tls: { ...served, ca: authority.cert } });
    const serve = (files: typeof good) => {
      copyFileSync(files.cert, served.cert);
      copyFileSync(files.key, served.key);
      service.signal('frontend', 'SIGHUP');
    };
    const endedMs = Date.now();
    serve(ended);
    const { verdict } = await service.sees(
      'the role is down',
      ({ verdict: { cause } }) => cause?.kind === 'role_down',
    );
    expect(verdict.sentence).toMatch(/^Role frontend has an expired certificate since \d\d:\d\d:\d\d UTC\b/);
    const since = verdict.cause!.since;
    expect(Date.parse(since)).toBeGreaterThanOrEqual(endedMs);
    serve(good);
    expect(await service.isOver('role_down/frontend')).toMatchObject({ start: since });
  },
);
