import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { segmentPosition } from '../../src/probes/backups/formats/segments.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { newFolder } from '../folder.ts';

// The first bytes of what GnuPG 2.2 (with a passphrase, for an RSA key, for a key on Curve25519) and age write.
const heads: readonly (readonly [string, Buffer])[] = [
  ['OpenPGP', Buffer.from('8c0d0409030262f102ddea9c753cffd2', 'hex')],
  ['OpenPGP', Buffer.from('85010c0369ac16f6d03a21a90107ff74', 'hex')],
  ['OpenPGP', Buffer.from('845e034bb0a14aedc12ee21201074000', 'hex')],
  ['OpenPGP', Buffer.from('-----BEGIN PGP MESSAGE-----\n\n')],
  ['age', Buffer.from('age-encryption.org/v1\n-> X25519 ')],
];
const encrypted = heads.map(([by, head]) => [by, Buffer.concat([head, Buffer.alloc(200, 0xa7)])] as const);
/** pgBackRest encrypts as OpenSSL does. */
const byOpenssl = execFileSync('openssl', ['enc', '-aes-256-cbc', '-pbkdf2', '-k', 'secret'], {
  input: 'x'.repeat(500),
});
const files = [...encrypted, ['OpenSSL', byOpenssl] as const];

describe.each(files)('what is encrypted (%s) is not damaged: nothing is known of it', (by, bytes) => {
  const segment = '000000010000000000000003';
  const names = [
    segment,
    `${segment}.gpg`,
    `${segment}.gz.age`,
    `${segment}-8f75317d444322c0b27be358b453ffc82647993e.gz`,
  ];
  test.each(names)('segment %s', async (name) => {
    const path = newFolder();
    writeFileSync(join(path, name), bytes);
    expect(segmentPosition('wal', name, 256)).toEqual({ timeline: 1, number: 3 });
    const segments = { log: 'wal', names: [name], newest: name } as const;
    const answer = await verifyBackup({ path, level: 'full', bytesPerSecond: 1e12, segments });
    expect(answer.segments).toEqual({ [name]: { unverified: `it is encrypted (${by})` } });
  });

  test('a dump', async () => {
    const path = join(newFolder(), 'main.sql.gz');
    writeFileSync(path, bytes);
    const answer = await verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 });
    expect(answer).toMatchObject({ result: 'unknown', msg: expect.stringContaining(`encrypted (${by})`) });
  });
});
