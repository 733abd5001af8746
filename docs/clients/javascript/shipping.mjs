// The code under test: it ships an order that waits in a queue.

import { DeleteMessageCommand, ReceiveMessageCommand } from "@aws-sdk/client-sqs";

/** Ships one order. Returns it, or undefined if none came within `wait` seconds. `ship` throws if the van is full. */
export async function shipNext(sqs, QueueUrl, { wait = 0, ship = async () => {} } = {}) {
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: wait }));
  for (const { Body, ReceiptHandle } of Messages) {
    await ship(Body);
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    return Body;
  }
}
