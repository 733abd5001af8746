import java.net.URI;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;

/**
 * The AWS SDK for Java v2 with an endpoint of SQSQLite's: a message that failed is seen again. The SDK checks the MD5 of
 * bodies and attributes.
 *
 * <pre>
 * sqsqlite serve --db queues.db          in another terminal
 * mvn -q compile exec:java
 * </pre>
 */
public final class Orders {
    public static void main(String[] arguments) {
        String endpoint = System.getenv().getOrDefault("AWS_ENDPOINT_URL", "http://localhost:9324");
        // anyone: as long as the server has no keys.
        var credentials = StaticCredentialsProvider.create(AwsBasicCredentials.create(
                System.getenv().getOrDefault("AWS_ACCESS_KEY_ID", "anyone"),
                System.getenv().getOrDefault("AWS_SECRET_ACCESS_KEY", "anything")));
        try (SqsClient sqs = SqsClient.builder()
                .endpointOverride(URI.create(endpoint))
                .region(Region.US_EAST_1)
                .credentialsProvider(credentials)
                .build()) {
            String url = sqs.createQueue(queue -> queue.queueName("orders")).queueUrl();

            var priority = MessageAttributeValue.builder().dataType("Number").stringValue("1").build();
            sqs.sendMessage(message -> message.queueUrl(url)
                    .messageBody("two chairs")
                    .messageAttributes(Map.of("priority", priority)));

            Message order = sqs.receiveMessage(receive -> receive.queueUrl(url)
                            .waitTimeSeconds(20)
                            .messageAttributeNames("All"))
                    .messages()
                    .get(0);
            System.out.println("received: " + order.body() + " " + order.messageAttributes().get("priority").stringValue());

            // The work failed: show the message again at once.
            sqs.changeMessageVisibility(change -> change.queueUrl(url)
                    .receiptHandle(order.receiptHandle())
                    .visibilityTimeout(0));
            var count = MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT;
            Message again = sqs.receiveMessage(receive -> receive.queueUrl(url).messageSystemAttributeNames(count))
                    .messages()
                    .get(0);
            System.out.println("receive " + again.attributes().get(count) + " of: " + again.body());
            sqs.deleteMessage(delete -> delete.queueUrl(url).receiptHandle(again.receiptHandle()));
        }
    }
}
