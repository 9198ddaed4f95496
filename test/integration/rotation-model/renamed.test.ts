import { playKind } from '../../rotation-kinds.ts';

playKind('renamed, linked');
