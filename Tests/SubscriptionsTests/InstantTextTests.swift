import SeededRandom
import Subscriptions
import Testing

@Suite("Instants are read and written as ISO 8601") struct InstantTextTests {
    @Test(
        "Instants are read in every form",
        arguments: [
            ("2026-11-20T12:00:00.000Z", 1_795_176_000_000),
            ("2026-11-20T15:00:00+0300", 1_795_176_000_000),
            ("2026-11-20T04:00:00.5-08:00", 1_795_176_000_500),
            ("2026-11-20t12:00z", 1_795_176_000_000),
            ("2026-11-20 12:00:00", 1_795_176_000_000),
            ("2026-11-20T12:00:00.123456789Z", 1_795_176_000_123),
            ("2024-02-29", 1_709_164_800_000),
            ("1969-12-31T23:59:59.999Z", -1),
            ("0001-01-01", -62_135_596_800_000),
            ("4001-01-01T00:00:00Z", 64_092_211_200_000),
        ])
    func reads(_ text: String, _ milliseconds: Int64) {
        #expect(Instant(iso8601: text) == Instant(milliseconds: milliseconds))
    }

    @Test(
        "An offset is seen in every form",
        arguments: [
            ("2026-11-20T12:00:00Z", true), ("2026-11-20t12:00z", true), ("2026-11-20T15:00:00+0300", true),
            ("2026-11-20T04:00:00.5-08:00", true), ("2026-11-20T12:00:00", false), ("2026-11-20 12:00:00.5", false),
            ("2024-02-29", false), ("", false),
        ])
    func offsets(_ text: String, _ isNamed: Bool) {
        #expect(Instant.namesOffset(text) == isNamed)
    }

    @Test(
        "Other texts are refused",
        arguments: [
            "", "2026", "2026-13-01", "2026-02-29", "2025-02-29T00:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:60Z",
            "2026-11-20T12:00:00Zx", "2026-11-20T", "2026-11-20T12:00:00.Z", "20261120", "２０２６-11-20",
            "2026-11-20T12:00:00+03:0",
        ])
    func refuses(_ text: String) {
        #expect(Instant(iso8601: text) == nil)
    }

    @Test("Instants are written in UTC with milliseconds")
    func writesUTCWithMilliseconds() {
        #expect(Instant(milliseconds: 1_795_176_000_007).iso8601 == "2026-11-20T12:00:00.007Z")
        #expect(Instant(milliseconds: -1).iso8601 == "1969-12-31T23:59:59.999Z")
        #expect(Instant(milliseconds: .max).iso8601 == "9999-12-31T23:59:59.999Z")
        #expect(Instant(milliseconds: .min).iso8601 == "0000-01-01T00:00:00.000Z")
    }

    @Test("What is written is read again")
    func readsWhatItWrites() {
        var random = Seeded(seed: 11)
        for _ in 0..<2000 {
            let instant = Instant(
                milliseconds: Int64.random(in: -62_135_596_800_000...253_402_300_799_999, using: &random))
            #expect(Instant(iso8601: instant.iso8601) == instant, "\(random)")
        }
    }
}
