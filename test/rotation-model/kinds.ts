import type { ModelOptions } from './play.ts';

const renamed = ['numbered', 'upwards', 'dated', 'links'] as const;
const copied = ['copytruncate', 'datedCopy'] as const;

/** The worlds of the rotation model that are played. */
export const kinds = {
  'renamed, linked': { compress: false, styles: renamed },
  'renamed and compressed': { compress: true, styles: renamed },
  'copied and truncated': { compress: false, styles: copied },
  'copied, truncated and compressed': { compress: true, styles: copied },
  'copied under unrelated names': { compress: false, styles: ['strangeCopy'] },
  'moved to another directory': { styles: ['olddir', 'olddirCopy'] },
  'logs of one name': { styles: ['twins'] },
  'rewritten in place': { compress: false, styles: ['rewritten'] },
  'unfinished archives of kubelet': { styles: ['kubelet'] },
  'gzip under any name': { compress: true, styles: ['svlogd', 'svlogd', 'otherSuffix'] },
  'two roles in one file': { shared: true, styles: [...renamed, ...copied] },
  'deleted for good': { compress: false, styles: ['deleted'] },
  'on a full disk': { styles: ['full', 'fullCopy'] },
  'copied and left, moved as a copy': { styles: ['copyLeft', 'renamecopy', 'hurried'] },
  'links of Kubernetes': { styles: ['kubernetes', 'docker'] },
} satisfies Record<string, ModelOptions>;
export type Kind = keyof typeof kinds;
