import { readFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import { describe, expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { openBed } from '../hosted.ts';
import { type Certificate, makeCertificates } from '../integration/pull/certificates.ts';
import { openScrape } from '../scrape.ts';
import { servingOn } from '../serving.ts';
import { until } from '../until.ts';

const made = makeCertificates();
const ours = made.authority('ours');

const openSecure = (certificate: Certificate, more: ServerOptions = {}) => {
  const files = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
  return createServer({ ...files, ...more }, (_, response) => response.end());
};

const refusals: Record<string, [open: () => ReturnType<typeof createPlainServer>, what: string | RegExp]> = {
  'a certificate that has expired': [
    () => openSecure(made.signed('expired', ours, { days: -1 })),
    'the server’s certificate has expired; renew it there (CERT_HAS_EXPIRED)',
  ],
  'a certificate of another host': [
    () => openSecure(made.signed('elsewhere', ours, { sans: 'DNS:elsewhere.test' })),
    'the certificate is for DNS:elsewhere.test; use such a name as the address, or set tls.serverName (ERR_TLS_CERT_ALTNAME_INVALID)',
  ],
  'a certificate of another authority': [
    () => openSecure(made.signed('foreign', made.authority('theirs'))),
    'the certificate has no trusted issuer; set tls.caFile to the certificate of its authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
  ],
  'a port without TLS': [
    () => createPlainServer((_, response) => response.end()),
    'the server does not speak TLS on this port; remove tls, or use another port (wrong version number)',
  ],
  'a server that wants a certificate of the client': [
    () =>
      openSecure(made.signed('asking', ours), {
        ...{ requestCert: true, rejectUnauthorized: true, ca: readFileSync(ours.cert) },
      }),
    /^the server closed the TLS connection without an answer; if it requires a client certificate, set tls\.certFile and tls\.keyFile \(.+\)$/,
  ],
};

const telling = (what: string | RegExp) => (typeof what === 'string' ? what : expect.stringMatching(what));

describe.each(Object.entries(refusals))('%s', (_, [open, what]) => {
  const urlOf = async (): Promise<string> => {
    const server = open();
    server.on('tlsClientError', () => {});
    return `https://localhost:${await servingOn(server)}/metrics`;
  };

  test('the text of a scrape says what to do', async () => {
    const opened = await openScrape({ url: await urlOf(), tls: { caFile: ours.cert } }, manualClock());
    expect(await opened.scrape.scrapeNow()).toMatchObject({ ok: false });
    expect(opened.scrape.status().lastFailure?.what).toEqual(telling(what));
  });

  test('the text of a hosted report says what to do', async () => {
    const bed = await openBed(await urlOf(), { tls: { caFile: ours.cert } });
    await bed.tick();
    await until('the report fails', () => bed.told.size > 0);
    expect([...bed.told]).toEqual([telling(what)]);
  });
});
