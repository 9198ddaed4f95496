import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { makeCertificates } from '../../integration/pull/certificates.ts';
import { agentFile } from './agent-file.ts';

const certificates = makeCertificates();
const { folder } = certificates;
const load = (text: string) => loadConfig({ file: agentFile(text), env: {}, cwd: folder });

const hash = '$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze';
const tls = {
  certFile: '/a.pem',
  keyFile: '/a.key',
  clientCaFile: '/c.pem',
  clientAuthType: 'VerifyClientCertIfGiven',
  clientAllowedSans: ['a'],
  minVersion: 'TLS12',
  maxVersion: 'TLS13',
  cipherSuites: ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
  preferServerCipherSuites: false,
  curvePreferences: ['X25519'],
};
/** The same block in the spelling of the Prometheus web configuration, written by hand. */
const prometheus = {
  cert_file: '/a.pem',
  key_file: '/a.key',
  client_ca_file: '/c.pem',
  client_auth_type: 'VerifyClientCertIfGiven',
  client_allowed_sans: ['a'],
  min_version: 'TLS12',
  max_version: 'TLS13',
  cipher_suites: ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
  prefer_server_cipher_suites: false,
  curve_preferences: ['X25519'],
};

test('both spellings mean the same, on every listener', async () => {
  const block = (tlsBlock: object, auth: object) => {
    const pullmetrics = { listenAddress: '127.0.0.1:9464', tls: tlsBlock, auth };
    const own = { pullmetrics: { ...pullmetrics, listenAddress: '127.0.0.1:9466' } };
    const admin = { tls: tlsBlock, auth };
    return load(JSON.stringify({ metrics: { pullmetrics }, services: { history: { metrics: own } }, admin }));
  };
  const one = await block(tls, { basicAuthUsers: { alice: hash }, bearer: { env: 'X' } });
  const other = await block(prometheus, { basic_auth_users: { alice: hash }, bearer: { env: 'X' } });
  const expected = { tls, auth: { basicAuthUsers: { alice: hash }, bearer: { env: 'X' } } };
  for (const { config, faults } of [one, other]) {
    expect(faults).toEqual([]);
    expect(config!.metrics.reporter).toMatchObject({ options: expected });
    expect(config!.services[0]!.metrics!.reporter).toMatchObject({ options: expected });
    expect(config!.admin).toMatchObject(expected);
  }
});

test('a hash may stand in the file without a warning, and is shown nowhere', async () => {
  const { warnings } = await load(`admin: {auth: {basic_auth_users: {alice: ${hash}}}}\n`);
  expect(warnings.map(faultLine).filter((line) => line.includes('alice'))).toEqual([]);
  const { faults } = await load(`admin: {auth: {basic_auth_users: {alice: ${hash}x}}}\n`);
  expect(faults).toHaveLength(1);
  expect(JSON.stringify(faults)).not.toContain(hash);
});

test('files that cannot serve are found before they have to', async () => {
  const good = certificates.authority('good');
  const other = certificates.authority('other');
  const expired = certificates.signed('expired', good, { days: -1 });
  const nonsense = join(folder, 'nonsense.pem');
  writeFileSync(nonsense, 'not PEM');
  const findings = async (cert: string, key: string, ca = good.cert) => {
    const file = `admin:\n  tls:\n    cert_file: ${cert}\n    keyFile: ${key}\n    client_ca_file: ${ca}\n`;
    const loaded = await load(file);
    expect(loaded.faults).toEqual([]);
    return loaded.findings.map(({ place, path, what }) => `${place?.line} ${path}: ${what}`);
  };
  expect(await findings(good.cert, good.key)).toEqual([]);
  expect(await findings(nonsense, good.key)).toEqual(['3 admin.tls.cert_file: contains no certificate']);
  expect(await findings(good.cert, nonsense)).toEqual([
    expect.stringMatching(/^4 admin\.tls\.keyFile: contains no usable private key \(/),
  ]);
  expect(await findings(good.cert, other.key)).toEqual([
    '4 admin.tls.keyFile: is not the key of the certificate',
  ]);
  expect(await findings(good.cert, good.key, nonsense)).toEqual([
    '5 admin.tls.client_ca_file: contains no certificate',
  ]);
  expect(await findings(expired.cert, expired.key)).toEqual([
    expect.stringMatching(/^3 admin\.tls\.cert_file: expired on \d{4}-\d\d-\d\dT/),
  ]);
  const gone = join(folder, 'gone.pem');
  expect(await findings(gone, good.key)).toEqual([`3 admin.tls.cert_file: file ${gone} is missing`]);
});

test('so are those of statsd streams', async () => {
  const made = certificates.authority('streams');
  const findings = async (cert: string) => {
    const tlsBlock = { cert_file: cert, keyFile: made.key };
    const statsd = { tcp: '127.0.0.1:8125', tls: tlsBlock };
    const loaded = await load(JSON.stringify({ services: { worker: { statsd } } }));
    expect(loaded.faults).toEqual([]);
    expect(loaded.config!.services[0]!.statsd!.tls).toEqual({ certFile: cert, keyFile: made.key });
    return loaded.findings.map(({ path, what }) => `${path}: ${what}`);
  };
  expect(await findings(made.cert)).toEqual([]);
  const gone = join(folder, 'no-such.pem');
  expect(await findings(gone)).toEqual([`services.worker.statsd.tls.cert_file: file ${gone} is missing`]);
  expect(await findings(made.key)).toEqual(['services.worker.statsd.tls.cert_file: contains no certificate']);
});

test('so are authorities without a certificate', async () => {
  const authority = certificates.authority('of-servers');
  const findings = async (caFile: string) => {
    const health = { url: 'https://127.0.0.1:1/health', tls: { caFile } };
    const loaded = await load(JSON.stringify({ services: { worker: { health } } }));
    expect(loaded.faults).toEqual([]);
    return loaded.findings.map(({ path, what }) => `${path}: ${what}`);
  };
  expect(await findings(authority.cert)).toEqual([]);
  expect(await findings(authority.key)).toEqual([
    'services.worker.health.tls.caFile: contains no certificate',
  ]);
});
