import type { Kind, Part, RawTags, Shape } from '../../../core/model.ts';

/** One series in the registry, of which each number is set by itself. */
export interface SeriesParts {
  /** Number `index` of the series, in the order of `SeriesView.at`. */
  part(index: number): Part;
  release(): void;
}

/** Where a scraped target's series are handed in. */
export interface PageIntake {
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape): SeriesParts;
}

/** The numbers of a target's series: what is set stays unseen until it is shown whole. */
export interface PageShow {
  swap(): void;
  /** Shows nothing until the next swap. */
  hide(): void;
}
