import type { Layout } from './histogram.ts';
import type { Kind, Labels, SeriesView } from './model.ts';
import type { Component } from './reasons.ts';
import type { Entry, Store, Stored } from './store.ts';

/** Which reporter block a series belongs to; one object for all series that agree. */
export interface Scope {
  readonly service: string;
  readonly relayed: boolean;
}

/** Labels with their identity and scope. */
export interface Place {
  readonly labels: Labels;
  /** Unambiguous text of the labels. */
  readonly identity: string;
  readonly scope: Scope;
}

/** Who sends a series. Two sources never share one: the first in order keeps it. */
export interface Source {
  readonly rank: number;
  readonly service: string;
  readonly component: Component;
  readonly relayed: boolean;
  readonly store: Store;
  /** Its totals began, and go on, without the agent: somebody else keeps them. */
  readonly carried: boolean;
  /** Where a family's series over the limit are added up; `''`: they have no `svc_service`. */
  overflow(service: string): Place;
}

/** What a handle was asked for, with everything about its place settled but whether it may be there. */
export interface Want extends Place {
  readonly source: Source;
  /** Sanitized. */
  readonly family: string;
  readonly kind: Kind;
  readonly rawName: string;
  /** Unambiguous text of the raw name and tags: who asks. Orders those who want the same place. */
  readonly rawKey: string;
  readonly layout: Layout;
  readonly help: string;
  /** What received numbers are divided by; 1 unless a vocabulary says otherwise. */
  readonly divisor: number;
  /** Neither limited nor subject to forbidden tags: the agent's own closed label sets. */
  readonly exempt: boolean;
}

/** An owner as its series sees it: a link of the chain of owners. */
export interface Owner {
  readonly want: Want;
  next: Owner | undefined;
  previous: Owner | undefined;
}

/** A label set of a family and the cells that hold its numbers. */
export class Series implements SeriesView, Stored {
  readonly want: Want;
  readonly at: number;
  readonly born: number;
  readonly overflow: boolean;
  startMs: number;
  first: Owner | undefined;
  /** Several senders meet here, or met at some time: totals are added up by their increases. */
  merged: boolean;
  /** The smallest raw key that ever owned it; what others are compared with. */
  leader: string | undefined;
  /** Owners that want this place and do not get it while others have it. */
  waiting: Set<Owner> | undefined;
  /** Totals of merged members that left, by their raw key, in case they come back. */
  gone: Map<string, Float64Array> | undefined;
  /** Some of them had to be forgotten. */
  forgot = false;

  constructor(want: Want, at: number, born: number, startMs: number, overflow: boolean) {
    this.want = want;
    this.at = at;
    this.born = born;
    this.startMs = startMs;
    this.overflow = overflow;
    this.merged = overflow;
  }

  get labels(): Labels {
    return this.want.labels;
  }
  get service(): string {
    return this.want.scope.service;
  }
  get relayed(): boolean {
    return this.want.scope.relayed;
  }
  get bounds(): readonly string[] {
    return this.want.layout.texts;
  }
  get store(): Store {
    return this.want.source.store;
  }

  beginAt(nowMs: number): void {
    this.startMs = nowMs;
  }

  entry(): Entry {
    const { at, born, overflow, startMs, labels, bounds, want } = this;
    const { family, kind, identity } = want;
    return { at, born, overflow, startMs, labels, texts: bounds, family, kind, identity };
  }
}

/** Whether the totals of a series began, and go on, without the agent: a page's, a store's. */
export function isCarried(series: SeriesView): boolean {
  return series instanceof Series && series.want.source.carried;
}
