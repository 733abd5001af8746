import com.amazon.sqs.javamessaging.AmazonSQSExtendedClient;
import com.amazon.sqs.javamessaging.ExtendedClientConfiguration;
import java.net.URI;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;

/**
 * Amazon's extended client: reads a message that SQSQLite's has sent, deletes it, and sends two, the second with today's
 * name of the attribute and a prefix of the key.
 */
public final class Extended {
    private static final String LARGE = "Zürich ".repeat(60_000);
    private static final MessageAttributeValue CITY =
            MessageAttributeValue.builder().dataType("String").stringValue("Zürich").build();

    public static void main(String[] arguments) {
        S3Client s3 = S3Client.builder()
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_S3")))
                .forcePathStyle(true)
                .build();
        SqsClient plain = SqsClient.builder()
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_SQS")))
                .build();
        ExtendedClientConfiguration settings =
                new ExtendedClientConfiguration().withPayloadSupportEnabled(s3, "bodies", true);
        SqsClient sqs = new AmazonSQSExtendedClient(plain, settings);
        String url = sqs.getQueueUrl(queue -> queue.queueName("work")).queueUrl();

        List<Message> messages = sqs.receiveMessage(to -> to.queueUrl(url).messageAttributeNames("All")).messages();
        Message message = messages.get(0);
        if (!message.body().equals(LARGE) || !message.messageAttributes().equals(Map.of("City", CITY))) {
            throw new AssertionError(message);
        }
        sqs.deleteMessage(gone -> gone.queueUrl(url).receiptHandle(message.receiptHandle()));
        int left = s3.listObjectsV2(list -> list.bucket("bodies")).keyCount();

        sqs.sendMessage(send -> send.queueUrl(url).messageBody(LARGE + "1").messageAttributes(Map.of("City", CITY)));
        settings.setLegacyReservedAttributeNameDisabled();
        settings.setS3KeyPrefix("java/");
        new AmazonSQSExtendedClient(plain, settings)
                .sendMessage(send -> send.queueUrl(url).messageBody(LARGE + "2"));
        System.out.println("left: " + left);
    }
}
