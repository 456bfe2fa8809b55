-- A small service in Haskell whose trouble is known: MODE. "ready" on stdout when it works.
-- Exported, for GHC leaves no other names in a program.
module Main (main, scoreDocs, keepSession, updateIndex) where

import Control.Concurrent
import Control.Monad
import Data.Bits
import Data.IORef
import qualified Data.ByteString as B
import qualified Data.Map as M
import Data.Word
import System.Environment
import System.Exit
import System.IO

{-# NOINLINE scoreDocs #-}
scoreDocs :: Word64 -> Int -> Word64
scoreDocs h 0 = h
scoreDocs h i = scoreDocs ((h `xor` (h `shiftR` 7)) * 1099511628211) (i - 1)

{-# NOINLINE keepSession #-}
keepSession :: IORef [B.ByteString] -> Word64 -> IO ()
keepSession all' n = do
  let s = B.replicate 16384 (fromIntegral n)
  s `seq` modifyIORef' all' (s :)
  threadDelay 2000

-- What lives is a map of 400,000 entries, of which some change.
{-# NOINLINE updateIndex #-}
updateIndex :: IORef (M.Map Word64 Word64) -> Word64 -> IO ()
updateIndex index n = modifyIORef' index (M.insert (n * 2654435761 `mod` 400000) n)

forever' :: (Word64 -> IO ()) -> IO ()
forever' work = void $ forkIO $ mapM_ work [0 ..]

main :: IO ()
main = do
  (mode : _) <- getArgs
  case mode of
    "hot" -> do
      sink <- newIORef 0
      forever' $ \n -> modifyIORef' sink (+ scoreDocs n 20000)
    "leak" -> do
      sessions <- newIORef []
      forever' $ keepSession sessions
    "gc" -> do
      index <- newIORef $! M.fromList [(i, i) | i <- [0 .. 399999]]
      forever' $ updateIndex index
    "idle" -> return ()
    _ -> exitFailure
  putStrLn "ready"
  hFlush stdout
  forever $ threadDelay 3600000000
