import Foundation

/// Processor time of processes, as the kernel counts it.
enum ProcessTimes {
    /// Seconds that a process and its children have used, those that ended included. Zero once it is gone.
    static func seconds(ofTree root: Int32) -> Double {
        let own = times(root).map { $0.own + $0.endedChildren } ?? 0
        let children = processes().compactMap(times).filter { $0.parent == root }
        return Double(own + children.reduce(0) { $0 + $1.own + $1.endedChildren }) / 100
    }

    /// The most memory that a process has held, in megabytes.
    static func peakMegabytes(of process: Int32) -> Double? {
        let lines = text("/proc/\(process)/status")?.split(separator: "\n")
        let peak = lines?.first { $0.hasPrefix("VmHWM:") }?.split(separator: " ").dropFirst().first
        return peak.flatMap { Double($0) }.map { $0 / 1024 }
    }

    private static func processes() -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }
    }

    /// The fields of proc(5) that follow the program's name, which may hold spaces.
    private static func times(_ process: Int32) -> (parent: Int32, own: Int, endedChildren: Int)? {
        guard let stat = text("/proc/\(process)/stat"), let name = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(name, offsetBy: 2)...].split(separator: " ")
        guard fields.count > 14, let parent = Int32(fields[1]) else { return nil }
        let ticks = fields[11...14].compactMap { Int($0) }
        return ticks.count == 4 ? (parent, ticks[0] + ticks[1], ticks[2] + ticks[3]) : nil
    }

    private static func text(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
