export const archivalStatuses = ['enabled', 'disabled', 'paused'] as const;
export type ArchivalStatus = (typeof archivalStatuses)[number];

/** Where archived data lies; kinds that we do not know keep their own key. */
export interface ArchivalProvider {
  kind: string;
  region?: string;
  endpoint?: string;
}

/** One section of `archival` (spec, Archival configuration). */
export interface ArchiveOptions {
  status: ArchivalStatus;
  enableRead: boolean;
  providers: readonly ArchivalProvider[];
}

export interface ArchivalOptions {
  history?: ArchiveOptions;
  visibility?: ArchiveOptions;
}

/** `domainDefaults.archival`: what a domain gets that says nothing. */
export interface DomainDefaults {
  archival: Partial<Record<'history' | 'visibility', { status: ArchivalStatus; uri?: string }>>;
}
