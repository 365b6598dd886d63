import ArgumentParser
import Configuration
import Yams
