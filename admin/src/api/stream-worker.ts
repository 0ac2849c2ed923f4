/** The shared worker with the event stream for all tabs of one browser; see `stream-hub.ts`. */
import { Hub, type ToHub } from "./stream-hub";

const hub = new Hub();

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({
  ports: [port],
}) => {
  if (port) port.onmessage = ({ data }: MessageEvent<ToHub>) => hub.take(port, data);
};
