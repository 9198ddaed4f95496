import { playKind } from '../../rotation-kinds.ts';

playKind('copied under unrelated names');
