import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.core.util.VersionInfo;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.ReceiptHandleIsInvalidException;
import software.amazon.awssdk.services.sqs.model.SendMessageResponse;

/**
 * A round trip by the AWS SDK for Java v2, which checks the MD5 of bodies and attributes; then the same with wrong ones,
 * to see that it does. Prints its version.
 */
public final class RoundTrip {
    private static final URI ENDPOINT = URI.create(System.getenv("AWS_ENDPOINT_URL"));
    private static final String BODY = "Zürich & <b>\"\n\t\r</b> 𝄞";
    private static final Map<String, MessageAttributeValue> ATTRIBUTES = Map.of(
            "City", attribute("String").stringValue("Zürich").build(),
            "n", attribute("Number").stringValue("42").build(),
            "Blob", attribute("Binary.gif").binaryValue(SdkBytes.fromByteArray(new byte[] {0, (byte) 255})).build());

    public static void main(String[] arguments) throws Exception {
        try (SqsClient sqs = SqsClient.builder().endpointOverride(ENDPOINT).build()) {
            String url = sqs.createQueue(queue -> queue.queueName("work")
                            .attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60")))
                    .queueUrl();
            messages(sqs, url);
            batches(sqs, url);
            longPoll(sqs, url);
            refused(QueueDoesNotExistException.class, () -> sqs.getQueueUrl(queue -> queue.queueName("nobody")));
            refused(ReceiptHandleIsInvalidException.class,
                    () -> sqs.deleteMessage(message -> message.queueUrl(url).receiptHandle("none of ours")));
            wrongDigestsAreNoticed(url);
        }
        System.out.println(VersionInfo.SDK_VERSION);
    }

    private static void messages(SqsClient sqs, String url) {
        var sent = sqs.sendMessage(message -> message.queueUrl(url).messageBody(BODY).messageAttributes(ATTRIBUTES));
        equal("384e95b09b07bd783252164424eef92b", sent.md5OfMessageAttributes());
        Message got = receive(sqs, url).get(0);
        equal(BODY, got.body());
        equal(ATTRIBUTES, got.messageAttributes());
        equal("1", got.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT));
        equal(List.of(), receive(sqs, url));
        sqs.changeMessageVisibility(change -> change.queueUrl(url)
                .receiptHandle(got.receiptHandle())
                .visibilityTimeout(0));
        Message again = receive(sqs, url).get(0);
        sqs.deleteMessage(message -> message.queueUrl(url).receiptHandle(again.receiptHandle()));
    }

    private static void batches(SqsClient sqs, String url) {
        var sent = sqs.sendMessageBatch(batch -> batch.queueUrl(url).entries(
                entry -> entry.id("a").messageBody(BODY).messageAttributes(ATTRIBUTES),
                entry -> entry.id("b").messageBody("x").delaySeconds(901)));
        equal("a", sent.successful().get(0).id());
        equal("InvalidParameterValue", sent.failed().get(0).code());
        Message got = receive(sqs, url).get(0);
        var deleted = sqs.deleteMessageBatch(batch -> batch.queueUrl(url).entries(
                entry -> entry.id("a").receiptHandle(got.receiptHandle())));
        equal(1, deleted.successful().size());
    }

    /** The asynchronous client, whose receive waits while another request sends. */
    private static void longPoll(SqsClient sqs, String url) throws Exception {
        try (SqsAsyncClient waiting = SqsAsyncClient.builder().endpointOverride(ENDPOINT).build()) {
            CompletableFuture<String> body = waiting
                    .receiveMessage(receive -> receive.queueUrl(url).waitTimeSeconds(20))
                    .thenApply(received -> received.messages().get(0).body());
            TimeUnit.MILLISECONDS.sleep(500);
            equal(false, body.isDone());
            sqs.sendMessage(message -> message.queueUrl(url).messageBody("awaited"));
            equal("awaited", body.get(15, TimeUnit.SECONDS));
        }
    }

    private static void wrongDigestsAreNoticed(String url) {
        var spoilers = new ArrayList<ExecutionInterceptor>();
        spoilers.add(spoiler(SendMessageResponse.Builder::md5OfMessageBody));
        spoilers.add(spoiler(SendMessageResponse.Builder::md5OfMessageAttributes));
        for (ExecutionInterceptor spoiler : spoilers) {
            try (SqsClient sqs = SqsClient.builder()
                    .endpointOverride(ENDPOINT)
                    .overrideConfiguration(override -> override.addExecutionInterceptor(spoiler))
                    .build()) {
                refused(SdkClientException.class, () -> sqs.sendMessage(
                        message -> message.queueUrl(url).messageBody(BODY).messageAttributes(ATTRIBUTES)));
            }
        }
    }

    private interface Digest {
        SendMessageResponse.Builder set(SendMessageResponse.Builder answer, String md5);
    }

    /** Changes a digest between the answer and the SDK's check. */
    private static ExecutionInterceptor spoiler(Digest digest) {
        return new ExecutionInterceptor() {
            @Override
            public SdkResponse modifyResponse(Context.ModifyResponse context, ExecutionAttributes attributes) {
                var answer = (SendMessageResponse) context.response();
                return digest.set(answer.toBuilder(), "0".repeat(32)).build();
            }
        };
    }

    private static List<Message> receive(SqsClient sqs, String url) {
        return sqs.receiveMessage(receive -> receive.queueUrl(url)
                        .messageAttributeNames("All")
                        .messageSystemAttributeNames(MessageSystemAttributeName.ALL))
                .messages();
    }

    private static void refused(Class<? extends Exception> kind, Runnable call) {
        try {
            call.run();
        } catch (RuntimeException error) {
            equal(kind, error.getClass());
            return;
        }
        throw new AssertionError("not refused: " + kind);
    }

    private static void equal(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static MessageAttributeValue.Builder attribute(String dataType) {
        return MessageAttributeValue.builder().dataType(dataType);
    }
}
