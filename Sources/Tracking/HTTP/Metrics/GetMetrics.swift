import Hummingbird

extension Route {
    /// `GET /metrics`: the metrics of this process and of the whole installation, for Prometheus.
    static func metrics(_ page: MetricsPage) -> Route {
        Route(.get, "/metrics") { _, _ in
            Response(
                status: .ok, headers: [.contentType: MetricsText.contentType, .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: await page.text())))
        }
    }
}
