import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The simulator writes dates as Apple does") struct AppleDatesTests {
    /// Instants around both ends of daylight saving time, from recorded answers and from the calendar.
    static let pairs: [(Int64, String, String)] = [
        (1_571_808_592, "2019-10-23 05:29:52", "2019-10-22 22:29:52"),
        (1_574_490_592, "2019-11-23 06:29:52", "2019-11-22 22:29:52"),
        (1_489_195_343, "2017-03-11 01:22:23", "2017-03-10 17:22:23"),
        (1_491_870_143, "2017-04-11 00:22:23", "2017-04-10 17:22:23"),
        (1_741_514_399, "2025-03-09 09:59:59", "2025-03-09 01:59:59"),
        (1_741_514_400, "2025-03-09 10:00:00", "2025-03-09 03:00:00"),
        (1_762_073_999, "2025-11-02 08:59:59", "2025-11-02 01:59:59"),
        (1_762_074_000, "2025-11-02 09:00:00", "2025-11-02 01:00:00"),
        (1_735_689_600, "2025-01-01 00:00:00", "2024-12-31 16:00:00"),
        (1_709_164_800, "2024-02-29 00:00:00", "2024-02-28 16:00:00"),
        (1_375_340_400, "2013-08-01 07:00:00", "2013-08-01 00:00:00"),
    ]

    @Test("Dates have Apple's forms of text", arguments: pairs)
    func textForms(seconds: Int64, greenwich: String, pacific: String) {
        // Milliseconds do not show in the text.
        let moment = StoreTime(milliseconds: seconds * 1000 + 586)
        var bytes: [UInt8] = []
        AppleDates.appendGreenwich(moment, to: &bytes)
        #expect(bytes == Array((greenwich + " Etc/GMT").utf8))
        bytes = []
        AppleDates.appendPacific(moment, to: &bytes)
        #expect(bytes == Array((pacific + " America/Los_Angeles").utf8))
        #expect(AppleDates.internet(moment) == greenwich.replacingOccurrences(of: " ", with: "T") + "Z")
    }

    @Test("Pacific time agrees with the time zone database")
    func agreesWithTheTimeZoneDatabase() throws {
        guard let zone = TimeZone(identifier: "America/Los_Angeles") else {
            print("no time zone database here: the comparison is left out")
            return
        }
        var numbers = SeededGenerator(seed: 11, stream: 0)
        for _ in 0..<20_000 {
            let seconds = Int64(1_200_000_000 + numbers.below(1_000_000_000))
            let ours = AppleDates.pacificOffset(at: StoreTime(milliseconds: seconds * 1000))
            let theirs = zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))
            try #require(ours == Int64(theirs), "seed 11, second \(seconds)")
        }
    }
}
