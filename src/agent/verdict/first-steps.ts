/** First steps for reasons that name the cause themselves, whatever could not be reached. */
const byReason: Readonly<Record<string, string>> = {
  tls: 'Check the keys tls of the configuration, and what the server offers: openssl s_client -connect HOST:PORT.',
  tls_expired: 'Renew the certificate on the server, and check that the server loaded it.',
  tls_hostname: 'Use a name of the certificate as the address, or set tls.serverName.',
  tls_untrusted:
    'Set tls.caFile to the certificate of the authority that signed the certificate of the server.',
  credentials: 'Check that the credentials can be read, and that the server accepts them.',
  content_type: 'Check the address in the configuration, and what answers there.',
  redirect: 'Check the address in the configuration, and what answers there.',
  resolve: 'Check the name in the configuration, and the name resolution of this host.',
};

/** First steps for a backup that cannot be read, or whose directory is gone. */
const ofBackups: Readonly<Record<string, string>> = {
  directory_gone: 'Mount the file system of the backups, or correct the directory in source.',
  evidence_unreadable:
    'Let the agent’s user read the backup: check the rights of its files and of each directory above them, its file system, or its tool’s command.',
  too_slow: 'Raise the interval of the backup: a check has as long as that, and 30 s at most.',
  failed: 'Run svc-agent probe with the name of the probe.',
};

/**
 * The first steps for the reason of a failure, of a probe of this kind; undefined if the steps of the kind of problem fit.
 */
export const firstStepsFor = (reason = '', probe?: string): string | undefined =>
  (probe === 'backup' ? ofBackups[reason] : undefined) ?? byReason[reason];
