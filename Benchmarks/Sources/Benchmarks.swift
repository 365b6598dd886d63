import ArgumentParser

/// `Benchmarks/run NAME`
@main
struct Benchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Benchmarks/run",
        abstract: "Measures the product beside its ceilings, in one run on one machine.",
        subcommands: [
            LoopBenchmark.self, LatencyBenchmark.self, ImportBenchmark.self, LookupBenchmark.self,
            FeedBenchmark.self, TakeoverBenchmark.self, YearBenchmark.self, BesideBenchmark.self,
            PurchaseBenchmark.self, SignedBenchmark.self, WebhookBenchmark.self, LookupLayers.self,
        ])
}
