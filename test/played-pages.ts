import { fileURLToPath } from 'node:url';
import { withReadings } from '../src/agent/admin/families.ts';
import type { Rows } from '../src/agent/verdict/collected.ts';
import { createRegistry, type Registry } from '../src/core/registry/registry.ts';
import type { VocabularyDetector } from '../src/core/vocabulary-detector.ts';
import { type InlineTable, readVocabularies, vocabularyDetectorFor } from '../src/sources/vocabularies.ts';
import { manualClock } from './clock.ts';
import { parse, type Sample } from './recorded-pages.ts';
import { wideLimits } from './registry.ts';
import { openRole, openTarget } from './scrape.ts';
import type { AtEnd } from './test-end.ts';
import { pageOf } from './view.ts';

/** Passes pages of one role through scrape, vocabulary, registry and exposition. */
export interface PlayedRole {
  readonly detector: VocabularyDetector;
  /** Scrapes a page and returns what the agent shows after that. */
  page(text: string): Promise<Sample[]>;
  /** Calls `use` with the series that the verdict reads. */
  read(use: (rows: Rows) => void): void;
  refusals(): unknown;
}

const folder = fileURLToPath(new URL('../vocabularies/', import.meta.url));

async function shownBy(registry: Registry): Promise<Sample[]> {
  const view = registry.view(({ relayed }) => relayed);
  const page = await pageOf(view);
  view.release();
  return parse(page);
}

/** Creates the role. `change` may replace its detector. */
export async function playRole(
  name: string,
  vocabulary: string | InlineTable = 'auto',
  change: (detector: VocabularyDetector) => VocabularyDetector = (detector) => detector,
  atEnd?: AtEnd,
): Promise<PlayedRole> {
  const clock = manualClock();
  const registry = createRegistry({ limits: wideLimits, serviceKeys: [name] }, { clock });
  const detector = change(vocabularyDetectorFor(vocabulary, await readVocabularies(folder), 'test'));
  const target = await openTarget(atEnd);
  const { scrape } = await openRole(registry, clock, target.url, { service: name, detector, atEnd });
  return {
    detector,
    async page(text) {
      target.page(text);
      // This is the age after which a page is not shared any more.
      clock.advance(1000);
      const result = await scrape.scrapeNow();
      if (!result.ok) throw new Error(result.what);
      return shownBy(registry);
    },
    read: (use) => withReadings(registry, use),
    refusals: () => registry.status().refusals,
  };
}
