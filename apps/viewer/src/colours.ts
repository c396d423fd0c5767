/** Fill and text of the slices of a task: Okabe and Ito's colours, which stay apart for colour-blind readers. */
export const SERIES: readonly { fill: string; text: string }[] = [
  { fill: "#0072b2", text: "#ffffff" },
  { fill: "#e69f00", text: "#111111" },
  { fill: "#009e73", text: "#111111" },
  { fill: "#cc79a7", text: "#111111" },
  { fill: "#56b4e9", text: "#111111" },
  { fill: "#d55e00", text: "#111111" },
];

/** What canvases need of the colours in page.css, as they are in the current scheme. */
export interface Scheme {
  paper: string;
  lane: string;
  grid: string;
  ink: string;
  muted: string;
  miss: string;
  over: string;
  focus: string;
  hidden: string;
}

export function currentScheme(): Scheme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: of("paper"),
    lane: of("lane"),
    grid: of("grid"),
    ink: of("ink"),
    muted: of("muted"),
    miss: of("miss"),
    over: of("over"),
    focus: of("focus"),
    hidden: of("hidden"),
  };
}
