import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;

/**
 * A suite that moves time, against a server that runs: sqsqlite serve --test-mode, and mvn test in another terminal.
 */
class OrdersTest {
    private static final String SERVER =
            System.getenv().getOrDefault("AWS_ENDPOINT_URL", "http://localhost:9324");
    private final HttpClient http = HttpClient.newHttpClient();
    private final SqsClient sqs = SqsClient.builder()
            .endpointOverride(URI.create(SERVER))
            .region(Region.EU_CENTRAL_1)
            .credentialsProvider(
                    StaticCredentialsProvider.create(AwsBasicCredentials.create("anyone", "anything")))
            .build();
    private String url;

    @BeforeEach
    void begin() throws Exception {
        post("reset", "");
        url = sqs.createQueue(queue -> queue.queueName("orders")).queueUrl();
    }

    @AfterEach
    void end() {
        sqs.close();
    }

    @Test
    void anOrderOfAKilledWorkerIsVisibleAgainAfter30Seconds() throws Exception {
        send("a table", 0);
        assertEquals(List.of("a table"), receive(0));
        assertEquals(List.of(), receive(0));
        advance(Duration.ofSeconds(30));
        assertEquals(List.of("a table"), receive(0));
    }

    @Test
    void aLongPollGetsAnOrderWhoseDelayOf15MinutesEnds() throws Exception {
        send("two chairs", 900);
        advance(Duration.ofSeconds(890));
        var received = CompletableFuture.supplyAsync(() -> receive(20));
        advance(Duration.ofSeconds(10));
        assertEquals(List.of("two chairs"), received.get());
    }

    private void send(String body, int delay) {
        sqs.sendMessage(message -> message.queueUrl(url).messageBody(body).delaySeconds(delay));
    }

    private List<String> receive(int wait) {
        return sqs.receiveMessage(receive -> receive.queueUrl(url).waitTimeSeconds(wait)).messages().stream()
                .map(Message::body)
                .toList();
    }

    private void advance(Duration time) throws IOException, InterruptedException {
        post("clock", "{\"advance\": " + time.toMillis() / 1000.0 + "}");
    }

    private void post(String page, String body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(SERVER + "/_test/" + page))
                .header("X-Sqsqlite-Test", "1")
                .POST(BodyPublishers.ofString(body))
                .build();
        assertEquals(200, http.send(request, BodyHandlers.ofString()).statusCode());
    }
}
