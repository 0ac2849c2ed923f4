/**
 * A page's connection to the event stream that all tabs share. The page leaves the stream on
 * `pagehide`, which also lets the browser keep the page for Back, and after a minute in the
 * background. It joins again when it is visible.
 */
import { BEAT, type FromHub, Hub, type LiveState, type Port, type ToHub } from "./stream-hub";
import StreamWorker from "./stream-worker?sharedworker";

/** A hidden page leaves after this long. */
const HIDDEN = 60_000;
/** If the worker has not answered by then, the page opens its own stream. */
const ANSWER = 10_000;

interface Listener {
  state: (state: LiveState) => void;
  event: (name: string, data: string) => void;
}
type Send = (message: ToHub) => void;

export class Stream {
  private send: Send | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private unanswered: ReturnType<typeof setTimeout> | undefined;
  private joined = false;
  private alone = typeof SharedWorker === "undefined";

  /** `viewer` identifies the session: pages of different users never share a stream. */
  constructor(
    private readonly viewer: string,
    private readonly listener: Listener,
  ) {}

  start() {
    addEventListener("pagehide", this.leave);
    addEventListener("pageshow", this.join);
    document.addEventListener("visibilitychange", this.looked);
    this.join();
  }

  stop() {
    removeEventListener("pagehide", this.leave);
    removeEventListener("pageshow", this.join);
    document.removeEventListener("visibilitychange", this.looked);
    this.leave();
  }

  /** The gateway is back: a lost connection is opened at once. */
  now() {
    if (this.joined) this.send?.("now");
  }

  private readonly looked = () => {
    clearTimeout(this.hidden);
    if (document.visibilityState === "hidden") this.hidden = setTimeout(this.leave, HIDDEN);
    else this.join();
  };

  private readonly join = () => {
    if (this.joined) return;
    this.joined = true;
    this.send ??= this.alone ? this.own() : this.shared();
    this.beat = setInterval(this.say, BEAT);
    this.say();
    // A page that is opened in the background leaves as well.
    if (document.visibilityState === "hidden") this.looked();
  };

  private readonly leave = () => {
    clearTimeout(this.hidden);
    clearInterval(this.beat);
    clearTimeout(this.unanswered);
    if (!this.joined) return;
    this.joined = false;
    this.send?.("leave");
    this.listener.state({ state: "connecting" });
  };

  private readonly say = () => {
    this.send?.("join");
    if (this.alone) return;
    clearTimeout(this.unanswered);
    this.unanswered = setTimeout(this.fallBack, ANSWER);
  };

  private readonly fallBack = () => {
    this.alone = true;
    clearTimeout(this.unanswered);
    if (!this.joined) return;
    this.send?.("leave");
    this.send = this.own();
    this.say();
  };

  private take(message: FromHub) {
    clearTimeout(this.unanswered);
    if (!this.joined) return;
    if (message.kind === "state") this.listener.state(message.state);
    else this.listener.event(message.name, message.data);
  }

  /** Through the worker that all tabs share. */
  private shared(): Send {
    const worker = new StreamWorker({ name: `events of ${this.viewer}` });
    worker.onerror = () => !this.alone && this.fallBack();
    worker.port.onmessage = ({ data }: MessageEvent<FromHub>) => !this.alone && this.take(data);
    return (message) => worker.port.postMessage(message);
  }

  /** Through a separate stream of this page. */
  private own(): Send {
    const hub = new Hub();
    const port: Port = { postMessage: (message) => this.take(message) };
    return (message) => hub.take(port, message);
  }
}
