import { playKind } from '../../rotation-kinds.ts';

playKind('renamed and compressed');
