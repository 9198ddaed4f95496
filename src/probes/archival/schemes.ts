import { endpoint } from '../object-store/endpoint.ts';
import type { Probe, ProbeDeps } from '../probe.ts';
import type { ArchivalProvider } from './options.ts';
import type { ArchiveTarget } from './target.ts';
import type { ArchivalUri } from './uri.ts';

export interface SchemeContext {
  uri: ArchivalUri;
  /** The provider of the scheme's kind. */
  provider?: ArchivalProvider;
  target: ArchiveTarget;
}

/** A kind of archive by the scheme of its URI. */
export interface SchemeRow {
  /** Key of the provider that it needs. */
  providerKind: 'filestore' | 'objectstore';
  /** Loads what it needs. */
  open(context: SchemeContext, deps: ProbeDeps): Promise<Probe>;
}

interface Defaults {
  region: string;
  endpoint(region: string): string;
}

/** Every scheme that the agent can look at. */
export const schemes: Readonly<Record<string, SchemeRow>> = {
  file: { providerKind: 'filestore', open: openDirectory },
  s3: objectStore({
    region: 'us-east-1',
    endpoint: (region) => `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
  }),
  // Its XML API takes the same requests and signatures, with HMAC keys.
  gs: objectStore({ region: 'auto', endpoint: () => 'https://storage.googleapis.com' }),
};

async function openDirectory({ uri, target }: SchemeContext, { clock }: ProbeDeps): Promise<Probe> {
  const { createDirectoryProbe } = await import('./directory.ts');
  return createDirectoryProbe(uri.path, target, { clock });
}

function objectStore(defaults: Defaults): SchemeRow {
  return {
    providerKind: 'objectstore',
    async open({ uri, provider, target }, deps) {
      const { createBucketProbe } = await import('./bucket.ts');
      const region = provider?.region ?? defaults.region;
      const place = {
        endpoint: endpoint.read(provider?.endpoint ?? defaults.endpoint(region))!,
        region,
        bucket: uri.bucket,
        prefix: uri.path,
      };
      return createBucketProbe(place, target, deps);
    },
  };
}
