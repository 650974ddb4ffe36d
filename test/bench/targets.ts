import { figures, type Rows, ratioOf, type Spread, type SubjectName, spreadOf } from './book.ts';

type Judged = readonly string[];

/** The worst round decides with `worst`, else the median. */
function atMost(bound: number, says: string, is: Spread | undefined, unit = '', worst = false): Judged {
  return judge(`${says} ≤ ${bound}${unit}`, is, unit, ({ median, most }) => (worst ? most : median) <= bound);
}

function judge(says: string, is: Spread | undefined, unit: string, meets: (is: Spread) => boolean): Judged {
  if (is === undefined) return [says, '', 'not run'];
  return [says, `${figures(is, unit === '' ? 2 : 1)}${unit}`, meets(is) ? 'met' : 'missed'];
}

/** What is to be reached, what was measured, and whether that is enough. */
export function judgeTargets(rows: Rows): Judged[] {
  const of = (id: string, subject?: SubjectName) => spreadOf(rows, id, subject);
  const ratio = (id: string, to: 'undici' | 'floor') => ratioOf(rows, id, to);
  const middling = (n: number, mb: number) => [
    atMost(1.15, `${n}: CPU per renewal / undici`, ratio(`cpu/${n}`, 'undici')),
    atMost(26, `${n}: lateness p99, while scraped`, of(`late-p99/${n}`), ' ms'),
    atMost(60, `${n}: lateness at most, while scraped`, of(`late-max/${n}`), ' ms', true),
    atMost(mb, `${n}: RSS`, of(`rss/${n}`), ' MB'),
  ];
  const slow = (id: string, subject: SubjectName) => [
    atMost(0, `${id}: lapses`, of(`lapses/${id}`, subject)),
    judge(`${id}: slack ≥ a third of T`, of(`slack/${id}`, subject), ' %', ({ least }) => least >= 100 / 3),
  ];
  const said = 'T=60, 3.5 s, rising, 200 markets: check-config says that it cannot be carried';
  return [
    atMost(1.3, '10: CPU / floor', ratio('cpu/10', 'floor')),
    atMost(95, '10: RSS', of('rss/10'), ' MB'),
    atMost(1.7, '10: first timer armed / undici', ratio('first/10', 'undici')),
    atMost(2, 'wakes a second while nothing is due', of('wakes')),
    ...middling(200, 110),
    ...middling(2000, 150),
    atMost(0, '10,000: lapses', of('lapses/10000'), '', true),
    atMost(1, '10,000: CPU per renewal / undici', ratio('cpu/10000', 'undici')),
    atMost(250, '10,000: RSS', of('rss/10000'), ' MB'),
    atMost(25, '10,000: the loop is held, while scraped', of('held/10000'), ' ms', true),
    ...slow('T=5, 1.7 s', 'daemon'),
    ...slow('T=60, 3.5 s', 'daemon'),
    ...slow('T=60, 3.5 s, rising', 'rising'),
    ...slow('T=5, 1.7 s, rising', 'rising'),
    judge(said, of('said', 'rising'), '', ({ least }) => least === 1),
    atMost(0, 'sick: lapses of the other markets', of('lapses/sick')),
    atMost(1000, 'npm start to all armed', of('start'), ' ms'),
    atMost(2, 'killswitchd version / bare Node', ratio('version', 'floor')),
  ];
}
