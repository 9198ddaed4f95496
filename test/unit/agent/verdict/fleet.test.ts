import { expect, test } from 'vitest';
import { type IncidentType, incidentTypes, inject, isBehind } from '../../../fleet/incidents.ts';
import { fleet } from '../../../fleet/judged.ts';
import { bySize } from '../../../size.ts';

/** A fleet is well for six minutes; then faults begin, a minute apart, and a quarter of an hour passes. */
function play(faults: readonly IncidentType[], isShuffled = false) {
  const { world, look } = fleet();
  let before = look();
  for (let i = 0; i < 24; i++) before = look();
  const inOrder = isShuffled ? faults.toReversed() : faults;
  let { verdict } = before;
  for (const type of inOrder) {
    inject(type, world.state);
    for (let i = 0; i < 4; i++) ({ verdict } = look());
  }
  for (let i = 0; i < 64; i++) ({ verdict } = look());
  return { before: before.verdict, verdict };
}

test.each(incidentTypes.map((type) => [type.name, type] as const))(
  '%s: the first sentence names it',
  (_, type) => {
    const { before, verdict } = play([type]);
    expect(before.sentence).toMatch(/^All is well/);
    expect(verdict.sentence).toMatch(type.says);
    // Databases of one failing store are one store in the sentence.
    expect(verdict.cause?.what.replace(/store main\/persistence/, 'store main')).toMatch(type.says);
  },
);

test.each(incidentTypes.map((type) => [type.name, type] as const))(
  '%s: its end is seen, and nothing that it left behind is named or becomes an incident',
  (_, type) => {
    const { world, look } = fleet();
    for (let i = 0; i < 25; i++) look();
    inject(type, world.state);
    for (let i = 0; i < 64; i++) look();
    world.heal();
    const after = Array.from({ length: 72 }, look);
    for (const { verdict } of after)
      for (const { what, causedBy } of verdict.problems)
        if (causedBy === undefined)
          expect(what.replace(/store main\/persistence/, 'store main')).toMatch(type.says);
    expect(after.at(-1)!.verdict.sentence).toMatch(/^All is well/);
    for (const { what } of after.at(-1)!.incidents)
      expect(what.replace(/store main\/persistence/, 'store main')).toMatch(type.says);
  },
);

const pairs = incidentTypes.flatMap((first, i) =>
  incidentTypes
    .slice(i + 1)
    .filter(({ place }) => place === undefined || place !== first.place)
    .map((second) => [first, second] as const),
);
const shown = bySize({
  short: pairs.filter((_, i) => i % 61 === 0),
  long: pairs.filter((_, i) => i % 25 === 0),
  nightly: pairs,
});

test.each(shown.map(([first, second], i) => [first.name, second.name, first, second, i % 2 === 1] as const))(
  '%s, and %s: the first sentence names both',
  (_, __, first, second, isShuffled) => {
    const { verdict } = play([first, second], isShuffled);
    if (!isBehind(first, second)) expect(verdict.sentence).toMatch(first.says);
    if (!isBehind(second, first)) expect(verdict.sentence).toMatch(second.says);
  },
);

/** Pairs in which everything that the first fault shows is explained by the second one. */
const covered = incidentTypes.flatMap((first) =>
  incidentTypes
    .filter(
      (second) =>
        second !== first &&
        (second.place === undefined || second.place !== first.place) &&
        isBehind(first, second),
    )
    .map((second) => [first, second] as const),
);
const shownCovered = bySize({
  short: covered.filter((_, i) => i % 61 === 0),
  long: covered.filter((_, i) => i % 25 === 0),
  nightly: covered,
});

test.each(shownCovered.map(([first, second]) => [first.name, second.name, first, second] as const))(
  '%s, and twenty minutes later %s: what began first is no consequence, and the first sentence names both',
  (_, __, first, second) => {
    const { world, look } = fleet();
    for (let i = 0; i < 25; i++) look();
    inject(first, world.state);
    for (let i = 0; i < 80; i++) look();
    inject(second, world.state);
    const { sentence } = Array.from({ length: 64 }, look).at(-1)!.verdict;
    expect(sentence).toMatch(first.says);
    expect(sentence).toMatch(second.says);
  },
);
